// The shapes of Equal and NotEqual, of which TensorFlow's shape functions say too much.
#ifndef COMPOSITE_RUNTIME_GRAPH_EQUAL_SHAPES_H_
#define COMPOSITE_RUNTIME_GRAPH_EQUAL_SHAPES_H_

#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// `==` and `!=` of shapes that do not fit are a scalar, and TensorFlow takes two dims of which it
// knows neither to fit. Makes the shape of such a node, which `refiner` has just been given,
// unknown: decisions are made of what is certain.
void ForgetUncertainShape(const tensorflow::Node* node, tensorflow::ShapeRefiner* refiner);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_EQUAL_SHAPES_H_
