// The kernel of the ops that call a foreign function.
#ifndef COMPOSITE_RUNTIME_FOREIGN_CALL_OP_H_
#define COMPOSITE_RUNTIME_FOREIGN_CALL_OP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "composite/runtime/foreign/function.h"
#include "composite/runtime/foreign/shape_rules.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace composite {

class TvmCallOp : public tensorflow::OpKernel {
 public:
  explicit TvmCallOp(tensorflow::OpKernelConstruction* context);

  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  absl::Status Named(const absl::Status& status) const;

  // Slices of tensors and what other frameworks lent may begin anywhere.
  absl::Status AlignedInputs(tensorflow::OpKernelContext* context,
                             std::vector<tensorflow::Tensor>* copies, Inputs* inputs) const;

  // The shape of an output, which is known before the call. `given`: the next input that is one.
  absl::Status KnownShape(tensorflow::OpKernelContext* context, int output, int* given,
                          tensorflow::TensorShape* shape) const;

  absl::Status Fill(tensorflow::OpKernelContext* context, const Inputs& inputs);
  // What the function launches is the next work of TensorFlow's stream; nobody waits for it.
  absl::Status FillOnGpu(tensorflow::OpKernelContext* context, const Inputs& inputs,
                         const Outputs& outputs) const;
  // On a device of TVM's, with copies of the tensors.
  absl::Status FillThere(tensorflow::OpKernelContext* context, const Outputs& outputs) const;
  absl::Status Make(tensorflow::OpKernelContext* context, const Inputs& inputs);

  std::string name_;
  bool on_gpu_ = false;
  std::optional<tvm_abi::Device> tvm_device_;
  ShapeRules rules_;
  std::vector<tensorflow::TensorShape> stated_;  // of the outputs whose shape is stated
  std::shared_ptr<const ForeignFunction> function_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_CALL_OP_H_
