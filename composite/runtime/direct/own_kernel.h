// The kernel of a node, in a function runtime of its own that ends with it.
#ifndef COMPOSITE_RUNTIME_DIRECT_OWN_KERNEL_H_
#define COMPOSITE_RUNTIME_DIRECT_OWN_KERNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

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

 private:
  OwnKernel() = default;

  std::unique_ptr<tensorflow::FunctionLibraryDefinition> functions_;
  std::unique_ptr<tensorflow::ProcessFunctionLibraryRuntime> process_;
  tensorflow::FunctionLibraryRuntime* runtime_ = nullptr;
  std::unique_ptr<tensorflow::OpKernel> kernel_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_OWN_KERNEL_H_
