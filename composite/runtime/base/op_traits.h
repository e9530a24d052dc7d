// Facts about TensorFlow's ops by their names: the rows of compiler/op_traits, as far as the
// runtime asks for them.
#ifndef COMPOSITE_RUNTIME_BASE_OP_TRAITS_H_
#define COMPOSITE_RUNTIME_BASE_OP_TRAITS_H_

#include "absl/strings/string_view.h"

namespace composite {

// How an op runs the functions that its attributes name.
enum class Runs { kNothing, kCall, kBranch, kLoop };

// What a kernel does for an op.
enum class Work {
  kUnknown,  // it has no lowering
  kMoves,    // it gives elements on, or what is known with the shapes
  kMaps,     // each element of the result depends on the operands' elements at its place
  kComputes,
  kSums,  // each element of the result is a sum of many terms: a product, a convolution
};

struct OpTraits {
  absl::string_view name;
  // Of a random op with hidden state, the op that draws the same distribution from a seed.
  absl::string_view stateless_twin;
  Runs runs = Runs::kNothing;
  // An executor, a placer or a partitioner finds it in graphs by its name.
  bool structural = false;
  Work work = Work::kUnknown;
  bool draws = false;  // random numbers from a seed
};

// The row of an op; one that states nothing, with an empty name, for an op without any.
const OpTraits& TraitsOf(absl::string_view op);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_OP_TRAITS_H_
