// Elements of one dimension: x[:, i], where i is a constant.
#ifndef COMPOSITE_RUNTIME_STACKS_PICKS_H_
#define COMPOSITE_RUNTIME_STACKS_PICKS_H_

#include <cstdint>
#include <optional>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

struct Pick {
  int axis = 0;  // of what is picked from; it vanishes
  int64_t place = 0;
};

// What a StridedSlice picks, if it picks one element of one dimension, at a place that is known and
// not counted from the end, and takes all of the others.
std::optional<Pick> PickOf(const tensorflow::Node& node);

// An element of a vector of indices, int32 or int64.
int64_t IndexAt(const tensorflow::Tensor& vector, int i);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STACKS_PICKS_H_
