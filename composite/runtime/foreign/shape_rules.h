// The attributes of a call of a foreign function, which say where the shapes of its outputs come
// from.
#ifndef COMPOSITE_RUNTIME_FOREIGN_SHAPE_RULES_H_
#define COMPOSITE_RUNTIME_FOREIGN_SHAPE_RULES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// In the attribute shape_of, beside the numbers of inputs.
constexpr int kStated = -1;  // by the attribute shapes
constexpr int kGiven = -2;   // by the next of the last inputs, which are not passed on

// How many shapes are among the inputs of an op for GPUs, whose shapes lie in the host's memory.
constexpr char kGivenAttr[] = "N";

// The device of TVM's that a function runs on; "" for the CPU.
constexpr char kTvmDeviceAttr[] = "tvm_device";

struct ShapeRules {
  bool returns = false;
  std::vector<int> shape_of;
  std::vector<tensorflow::PartialTensorShape> shapes;
  int inputs = 0;  // that are passed to the function

  absl::Status Read(const tensorflow::AttrSlice& attrs);
  absl::Status Read(tensorflow::shape_inference::InferenceContext* c);

 private:
  // `get(name, value)` reads an attribute.
  template <typename Get>
  absl::Status ReadBy(const Get& get);
  absl::Status Check(const std::vector<tensorflow::DataType>& in, size_t outputs);
};

// Sets the shapes of a node's outputs.
absl::Status InferShapes(const ShapeRules& rules, tensorflow::shape_inference::InferenceContext* c);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_SHAPE_RULES_H_
