#include "composite/runtime/direct/own_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/instantiate/inline_run.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/lib/random/random.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {

absl::StatusOr<std::unique_ptr<const OwnKernel>> OwnKernel::Make(
    tensorflow::FunctionLibraryRuntime* runtime, tensorflow::NodeDef node) {
  auto made = std::unique_ptr<OwnKernel>(new OwnKernel);
  TF_RETURN_IF_ERROR(runtime->Clone(&made->functions_, &made->process_, &made->runtime_));
  const tensorflow::OpDef* op = nullptr;
  TF_RETURN_IF_ERROR(made->functions_->LookUpOpDef(node.op(), &op));
  tensorflow::AddDefaultsToNodeDef(*op, &node);
  std::shared_ptr<const tensorflow::NodeProperties> properties;
  TF_RETURN_IF_ERROR(tensorflow::NodeProperties::CreateFromNodeDef(
      std::move(node), made->functions_.get(), &properties));
  tensorflow::OpKernel* kernel = nullptr;
  TF_RETURN_IF_ERROR(made->runtime_->CreateKernel(properties, &kernel));
  made->kernel_.reset(kernel);
  made->input_places_.resize(kernel->num_inputs());
  made->output_places_.resize(kernel->num_outputs());
  return std::unique_ptr<const OwnKernel>(std::move(made));
}

int64_t OwnKernel::NewStep() { return -static_cast<int64_t>(tensorflow::random::New64() >> 1); }

tensorflow::OpKernelContext::Params OwnKernel::ParamsOf(
    int64_t step, tensorflow::ScopedStepContainer* container,
    absl::Span<const tensorflow::TensorValue> inputs) const {
  tensorflow::OpKernelContext::Params params;
  params.step_id = step;
  params.step_container = container;
  params.op_kernel = kernel_.get();
  params.device = device();
  params.resource_manager = device()->resource_manager();
  params.function_library = runtime_;
  params.runner = InlineRunner();
  params.run_all_kernels_inline = true;
  params.inputs = inputs;
  params.input_alloc_attrs = input_places_;
  params.output_attr_array = output_places_.data();
  return params;
}

absl::StatusOr<tensorflow::Tensor> OwnKernel::OutputOf(tensorflow::OpKernelContext* context,
                                                       int i) const {
  const tensorflow::Tensor* const made = context->mutable_output(i);
  if (made != nullptr) return *made;
  return absl::InternalError(absl::StrCat(kernel_->type_string(), " has no output ", i));
}

}  // namespace composite
