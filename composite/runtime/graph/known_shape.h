// Shapes of sizes that were inferred.
//
// TensorFlow's constructors of shapes end the process where there are more elements than an int64
// counts. No such tensor is ever made, but its shape is inferred: 2^32 rows times 2^32 columns.
#ifndef COMPOSITE_RUNTIME_GRAPH_KNOWN_SHAPE_H_
#define COMPOSITE_RUNTIME_GRAPH_KNOWN_SHAPE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace composite {

// The shape of these sizes, -1 for unknown ones. Of one with too many elements the rank alone is
// known.
tensorflow::PartialTensorShape KnownShape(absl::Span<const int64_t> sizes);

tensorflow::PartialTensorShape KnownShape(tensorflow::shape_inference::InferenceContext* context,
                                          tensorflow::shape_inference::ShapeHandle shape);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_KNOWN_SHAPE_H_
