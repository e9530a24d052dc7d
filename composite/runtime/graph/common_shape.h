// What two shapes have in common.
#ifndef COMPOSITE_RUNTIME_GRAPH_COMMON_SHAPE_H_
#define COMPOSITE_RUNTIME_GRAPH_COMMON_SHAPE_H_

#include "tensorflow/core/framework/partial_tensor_shape.h"

namespace composite {

// What is known of a shape that is one or the other.
tensorflow::PartialTensorShape Common(const tensorflow::PartialTensorShape& a,
                                      const tensorflow::PartialTensorShape& b);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_COMMON_SHAPE_H_
