// An op with its attributes, ready to be called on the thread of whoever calls it.
#ifndef COMPOSITE_RUNTIME_DIRECT_DIRECT_OP_H_
#define COMPOSITE_RUNTIME_DIRECT_DIRECT_OP_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/direct/direct_call.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

class DirectOp : public DirectCall {
 public:
  // Of a node on the device of `runtime`, the only one. FailedPrecondition: the op's kernel is one
  // that TensorFlow waits for.
  static absl::StatusOr<std::shared_ptr<const DirectOp>> Make(
      tensorflow::FunctionLibraryRuntime* runtime, tensorflow::NodeDef node);

  absl::Status Call(absl::Span<const tensorflow::Tensor* const> arguments,
                    absl::Span<tensorflow::Tensor> results) const override;

 private:
  DirectOp() = default;

  // A runtime of its own, which lives as long as the kernel.
  std::unique_ptr<tensorflow::FunctionLibraryDefinition> functions_;
  std::unique_ptr<tensorflow::ProcessFunctionLibraryRuntime> process_;
  tensorflow::FunctionLibraryRuntime* runtime_ = nullptr;
  std::unique_ptr<tensorflow::OpKernel> kernel_;
  std::vector<tensorflow::AllocatorAttributes> input_places_;
  std::vector<tensorflow::AllocatorAttributes> output_places_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_DIRECT_OP_H_
