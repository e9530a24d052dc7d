// Additions to variables as sums: a region may then compute the sum, in one pass over memory with
// what it is made of.
#ifndef COMPOSITE_RUNTIME_VARIABLES_UPDATES_H_
#define COMPOSITE_RUNTIME_VARIABLES_UPDATES_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Whether an addition to a variable may be a sum; `operand` computes what is added.
using MayUpdate =
    absl::FunctionRef<bool(const tensorflow::Node& addition, const tensorflow::Node& operand)>;

// What functions have of variables.
struct VariableFacts {
  const tensorflow::FunctionLibraryDefinition& library;  // with the functions that nodes run
  bool may_have_twice;  // two arguments of one function may be one variable
};

// Puts a sum of what the variable holds, and CompositeUpdateVariable, which has it hold the sum, in
// the place of each addition of floats to a variable (AssignAddVariableOp, AssignSubVariableOp)
// that may be one, and CompositeReadVariable (contents.h) in that of the read of it. What reads the
// variable behind the addition takes the sum, unless it is made of 16-bit floats. Of two additions
// in succession, where the second one takes the first one's sum, it does both. All else stays, the
// names of the additions too.
//
// No sum is of what another node may have written over, and nobody takes one in the place of what
// another node may have written: see access_order.h. Accesses that were ordered stay so. Additions
// that another node may come between are left alone.
absl::Status MakeUpdates(MayUpdate may_update, const VariableFacts& facts,
                         tensorflow::Graph* graph);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_UPDATES_H_
