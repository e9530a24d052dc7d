// An op with its attributes, ready to be called on the thread of whoever calls it.
#ifndef COMPOSITE_RUNTIME_DIRECT_DIRECT_OP_H_
#define COMPOSITE_RUNTIME_DIRECT_DIRECT_OP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/direct/direct_call.h"
#include "composite/runtime/direct/own_kernel.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
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

  std::unique_ptr<const OwnKernel> own_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_DIRECT_OP_H_
