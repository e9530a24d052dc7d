// The shape function of every composite op: TensorFlow's own shape functions over its expansion.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_SHAPE_FUNCTION_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_SHAPE_FUNCTION_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace composite {

// To register with the op. While a fact is missing (see IsNotYet) all output shapes are unknown. An
// error names the author's place and the inner op.
tensorflow::OpShapeInferenceFn ShapeFunction(const std::string& op_name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_SHAPE_FUNCTION_H_
