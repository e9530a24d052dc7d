// Which inputs of a node never change, noted on the node: its kernel may then pack them once.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_CONSTANT_INPUTS_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_CONSTANT_INPUTS_H_

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/graph/facts.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// `def` with the attributes kConstantsAttr, from these facts, and kVariablesAttr, from `variables`
// (inputs that a ReadVariableOp gives); empty if it has them already, or is no node of a graph (an
// eager call's has no stamp). Constant vectors, scalars and small matrices are left out: nothing is
// gained by packing them.
absl::optional<tensorflow::NodeDef> WithConstants(const tensorflow::NodeDef& def,
                                                  absl::Span<const InputFact> facts,
                                                  absl::Span<const int> variables);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_CONSTANT_INPUTS_H_
