// Notes on a node which of its inputs never change, and which are the same in many calls: its
// kernel may then pack them once.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_CONSTANT_INPUTS_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_CONSTANT_INPUTS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/graph/facts.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// The inputs of a node, in order, whose elements may be the same in many calls.
struct InputSources {
  std::vector<int> variables;  // that a ReadVariableOp gives
  std::vector<int> arguments;  // of the function that the node is in

  // Takes in what an input comes from, an op or an argument ("_Arg").
  void Add(int input, absl::string_view op);
};

// `def` with the attributes kConstantsAttr, from these facts, and kVariablesAttr and
// kArgumentsAttr, from the sources; empty if it has them already, or is no node of a graph (an
// eager call's has no stamp). Constant vectors, scalars and small matrices are left out: nothing is
// gained by packing them.
absl::optional<tensorflow::NodeDef> WithConstants(const tensorflow::NodeDef& def,
                                                  absl::Span<const InputFact> facts,
                                                  const InputSources& sources);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_CONSTANT_INPUTS_H_
