#include "composite/runtime/direct/own_kernel.h"

#include <utility>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
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
  return std::unique_ptr<const OwnKernel>(std::move(made));
}

}  // namespace composite
