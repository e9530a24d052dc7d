// The kernel of a node, in a function runtime of its own that ends with it.
#ifndef COMPOSITE_RUNTIME_DIRECT_OWN_KERNEL_H_
#define COMPOSITE_RUNTIME_DIRECT_OWN_KERNEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

class OwnKernel {
 public:
  // Of a node on the device of `runtime`, whose functions it knows.
  static absl::StatusOr<std::unique_ptr<const OwnKernel>> Make(
      tensorflow::FunctionLibraryRuntime* runtime, tensorflow::NodeDef node);

  // TensorFlow's kernels may be called by several threads, though not by const methods.
  tensorflow::OpKernel& kernel() const { return *kernel_; }
  tensorflow::FunctionLibraryRuntime* runtime() const { return runtime_; }
  tensorflow::Device* device() const { return runtime_->device(); }

  static int64_t NewStep();
  // Of a call on its caller's thread. `container` and `inputs` must outlive it.
  tensorflow::OpKernelContext::Params ParamsOf(
      int64_t step, tensorflow::ScopedStepContainer* container,
      absl::Span<const tensorflow::TensorValue> inputs) const;
  // An output of a call that is done.
  absl::StatusOr<tensorflow::Tensor> OutputOf(tensorflow::OpKernelContext* context, int i) const;

 private:
  OwnKernel() = default;

  std::unique_ptr<tensorflow::FunctionLibraryDefinition> functions_;
  std::unique_ptr<tensorflow::ProcessFunctionLibraryRuntime> process_;
  tensorflow::FunctionLibraryRuntime* runtime_ = nullptr;
  std::unique_ptr<tensorflow::OpKernel> kernel_;
  std::vector<tensorflow::AllocatorAttributes> input_places_;
  std::vector<tensorflow::AllocatorAttributes> output_places_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_OWN_KERNEL_H_
