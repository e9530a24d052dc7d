#include "composite/runtime/direct/direct_op.h"

#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/direct/step_container.h"
#include "composite/runtime/instantiate/inline_run.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/lib/random/random.h"
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
  TF_RETURN_IF_ERROR(runtime->Clone(&made->functions_, &made->process_, &made->runtime_));
  const tensorflow::OpDef* op = nullptr;
  TF_RETURN_IF_ERROR(made->functions_->LookUpOpDef(node.op(), &op));
  tensorflow::AddDefaultsToNodeDef(*op, &node);
  std::shared_ptr<const tensorflow::NodeProperties> properties;
  TF_RETURN_IF_ERROR(tensorflow::NodeProperties::CreateFromNodeDef(
      std::move(node), made->functions_.get(), &properties));
  OpKernel* kernel = nullptr;
  TF_RETURN_IF_ERROR(made->runtime_->CreateKernel(properties, &kernel));
  made->kernel_.reset(kernel);
  if (kernel->AsAsync() != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(kernel->type_string(), " is run asynchronously"));
  }
  made->arguments_ = kernel->input_types();
  made->results_ = kernel->output_types();
  made->input_places_.resize(made->arguments_.size());
  made->output_places_.resize(made->results_.size());
  return std::shared_ptr<const DirectOp>(std::move(made));
}

absl::Status DirectOp::Call(absl::Span<const Tensor* const> arguments,
                            absl::Span<Tensor> results) const {
  // As TensorFlow names an op in traces.
  const tsl::profiler::TraceMe trace(
      [this] { return absl::StrCat(kernel_->name(), ":", kernel_->type_string()); },
      tsl::profiler::TraceMeLevel::kInfo);
  absl::InlinedVector<TensorValue, 8> inputs;
  // Nobody writes to a tensor that has another owner.
  for (const Tensor* one : arguments) inputs.emplace_back(const_cast<Tensor*>(one));
  tensorflow::Device* const device = runtime_->device();
  OpKernelContext::Params params;
  params.step_id = -static_cast<int64_t>(tensorflow::random::New64() >> 1);
  StepContainer container(*device, params.step_id);
  params.step_container = &container;
  params.op_kernel = kernel_.get();
  params.device = device;
  params.resource_manager = device->resource_manager();
  params.function_library = runtime_;
  params.runner = InlineRunner();
  params.run_all_kernels_inline = true;
  params.inputs = inputs;
  params.input_alloc_attrs = input_places_;
  params.output_attr_array = output_places_.data();
  OpKernelContext context(&params, static_cast<int>(results.size()));
  device->Compute(kernel_.get(), &context);
  TF_RETURN_IF_ERROR(context.status());
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor* const made = context.mutable_output(static_cast<int>(i));
    if (made == nullptr) {
      return absl::InternalError(absl::StrCat(kernel_->type_string(), " has no output ", i));
    }
    results[i] = *made;
  }
  return absl::OkStatus();
}

}  // namespace composite
