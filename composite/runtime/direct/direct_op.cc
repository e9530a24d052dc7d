#include "composite/runtime/direct/direct_op.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/direct/step_container.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "tsl/profiler/lib/traceme.h"

namespace composite {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorValue;

absl::StatusOr<std::shared_ptr<const DirectOp>> DirectOp::Make(FunctionLibraryRuntime* runtime,
                                                               tensorflow::NodeDef node) {
  auto made = std::shared_ptr<DirectOp>(new DirectOp);
  TF_ASSIGN_OR_RETURN(made->own_, OwnKernel::Make(runtime, std::move(node)));
  OpKernel& kernel = made->own_->kernel();
  if (kernel.AsAsync() != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(kernel.type_string(), " is run asynchronously"));
  }
  made->arguments_ = kernel.input_types();
  made->results_ = kernel.output_types();
  return std::shared_ptr<const DirectOp>(std::move(made));
}

absl::Status DirectOp::Call(absl::Span<const Tensor* const> arguments,
                            absl::Span<Tensor> results) const {
  // As TensorFlow names an op in traces.
  OpKernel& kernel = own_->kernel();
  const tsl::profiler::TraceMe trace(
      [&kernel] { return absl::StrCat(kernel.name(), ":", kernel.type_string()); },
      tsl::profiler::TraceMeLevel::kInfo);
  absl::InlinedVector<TensorValue, 8> inputs;
  // Nobody writes to a tensor that has another owner.
  for (const Tensor* one : arguments) inputs.emplace_back(const_cast<Tensor*>(one));
  tensorflow::Device* const device = own_->device();
  const int64_t step = OwnKernel::NewStep();
  StepContainer container(*device, step);
  OpKernelContext::Params params = own_->ParamsOf(step, &container, inputs);
  OpKernelContext context(&params, static_cast<int>(results.size()));
  device->Compute(&kernel, &context);
  TF_RETURN_IF_ERROR(context.status());
  for (size_t i = 0; i < results.size(); ++i) {
    TF_ASSIGN_OR_RETURN(results[i], own_->OutputOf(&context, static_cast<int>(i)));
  }
  return absl::OkStatus();
}

}  // namespace composite
