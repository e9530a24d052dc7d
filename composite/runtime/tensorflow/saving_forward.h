// A forward that keeps values for its backward.
//
// A gradient is asked for when the forward node is there already, with the outputs that it has. The
// gradient then adds a saving forward: a CompositeCall of the same inputs whose first outputs are
// those of the forward node, and whose other outputs are what the backward would compute again.
// Before the graph runs, the saving forward takes the forward node's place, so that nothing is
// computed twice. Where that does not happen (no graph pass runs, or the node of that name computes
// something else) both run, and the results are the same.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_SAVING_FORWARD_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_SAVING_FORWARD_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "composite/runtime/program/node_attrs.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// On a CompositeCall, beside kSavingForwardAttr: the op of that node, a space, and its
// kProgramAttr.
inline constexpr char kSavingForwardOfAttr[] = "_composite_twin_of";

// Puts the outputs of saving forwards in the place of forward nodes, which become identities of
// their names.
absl::Status MergeSavingForwards(tensorflow::Graph* graph);

// The same for a function: what takes the place of a forward node, by its name. The outputs of the
// one are those of the other, in order, as the op IdentityN has them.
absl::flat_hash_map<std::string, tensorflow::NodeDef> SavingForwardIdentities(
    const tensorflow::FunctionDef& function);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_SAVING_FORWARD_H_
