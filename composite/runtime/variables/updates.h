// Additions to variables as sums: a region may then compute the sum, in one pass over memory with
// what it is made of.
#ifndef COMPOSITE_RUNTIME_VARIABLES_UPDATES_H_
#define COMPOSITE_RUNTIME_VARIABLES_UPDATES_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Whether an addition to a variable may be a sum; `operand` computes what is added.
using MayUpdate =
    absl::FunctionRef<bool(const tensorflow::Node& addition, const tensorflow::Node& operand)>;

// Puts a sum of what the variable holds, and CompositeUpdateVariable, which has it hold the sum, in
// the place of each addition of floats to a variable (AssignAddVariableOp, AssignSubVariableOp)
// that may be one, and CompositeReadVariable (contents.h) in that of the read of it. What waits for
// the addition to read the variable takes the sum, unless another node may write in between, or it
// is made of 16-bit floats. Of two additions in succession, where the second one takes the first
// one's sum, it does both. All else stays, the names of the additions too.
absl::Status MakeUpdates(MayUpdate may_update, tensorflow::Graph* graph);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_UPDATES_H_
