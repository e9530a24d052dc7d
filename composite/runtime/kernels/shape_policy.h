// Which shape class to compile for, learned from the calls that came.
//
// The first call gets a class of its own dims. Where only dims vary that a batch or a sequence
// would (the first input's, but for its last), or the value of an input that is a size, they become
// symbols of that class: dims that were equal in every call share one, and any number of batch
// sizes costs two kernels. Where others differ, the call comes from another layer, with weights of
// another shape: that gets classes of its own, since a kernel of fixed weights is the faster one.
// With too many of those, all that varies is a symbol.
#ifndef COMPOSITE_RUNTIME_KERNELS_SHAPE_POLICY_H_
#define COMPOSITE_RUNTIME_KERNELS_SHAPE_POLICY_H_

#include <vector>

#include "composite/runtime/request/kernel_shapes.h"

namespace composite {

// Of the calls of one program with one set of attributes and dtypes. Not thread-safe.
class ShapePolicy {
 public:
  // Layers (see above) that get classes of their own.
  static constexpr int kMaxLayers = 6;

  // Takes in a call that no class covers, and returns the class to compile for it.
  Signature Learn(const Signature& call);

 private:
  // Calls of inputs of the same ranks that share a class.
  struct Family {
    Signature first;
    // Dims of one block had equal values in every call so far.
    std::vector<int> block_of;  // by position in Signature::dims
    std::vector<bool> varied;   // by block: whether it had more than one value
  };

  static Family Start(const Signature& call);
  // The positions at which the call is outside of the family's class.
  static std::vector<size_t> Outside(const Family& family, const Signature& call);
  // Whether these positions are all those of a batch or a sequence.
  static bool IsSameLayer(const Family& family, const Signature& call);
  static void Refine(const Signature& call, Family* family);
  static Signature ClassOf(const Family& family);

  Signature LearnGeneral(const Signature& call);

  std::vector<Family> layers_;
  std::vector<Family> general_;  // one for each combination of ranks with too many layers
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_SHAPE_POLICY_H_
