#include "composite/runtime/hybrid_c_api.h"

#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/hybrid/model.h"
#include "tensorflow/c/tf_tensor_helper.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Tensor;

HybridModel* Unwrap(composite_hybrid* model) { return reinterpret_cast<HybridModel*>(model); }
const HybridModel* Unwrap(const composite_hybrid* model) {
  return reinterpret_cast<const HybridModel*>(model);
}

absl::StatusOr<std::unique_ptr<HybridModel>> Open(const std::string& path) {
  // A link may lead to the file; where there is none, the model says so.
  const std::unique_ptr<char, decltype(&free)> file(realpath(path.c_str(), nullptr), &free);
  return HybridModel::Open(file == nullptr ? path : file.get(), composite::tvm_ffi::ByName());
}

absl::Status Call(HybridModel* model, TF_Tensor* const* inputs, int input_count,
                  TF_Tensor** outputs, int output_count) {
  if (output_count != model->description().outputs()) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", model->description().outputs(),
                                                   " outputs, not ", output_count));
  }
  std::vector<Tensor> given(input_count);
  for (int i = 0; i < input_count; ++i) {
    if (inputs[i] == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, ": NULL"));
    TF_RETURN_IF_ERROR(tensorflow::TF_TensorToTensor(inputs[i], &given[i]));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<Tensor> results, model->Call(given));
  std::vector<tensorflow::TF_TensorPtr> made;
  for (const Tensor& result : results) {
    absl::Status status;
    made.emplace_back(tensorflow::TF_TensorFromTensor(result, &status));
    TF_RETURN_IF_ERROR(status);
  }
  if (static_cast<int>(made.size()) != output_count) {
    return absl::InternalError(absl::StrCat("the module returned ", made.size(), " values"));
  }
  for (int i = 0; i < output_count; ++i) outputs[i] = made[i].release();
  return absl::OkStatus();
}

}  // namespace
}  // namespace composite

extern "C" {

int composite_open_hybrid(const char* path, composite_hybrid** model, char* error,
                          size_t error_size) {
  return composite::Answer(error, error_size, [&]() -> absl::Status {
    TF_ASSIGN_OR_RETURN(auto opened, composite::Open(path));
    *model = reinterpret_cast<composite_hybrid*>(opened.release());
    return absl::OkStatus();
  });
}

void composite_close_hybrid(composite_hybrid* model) { delete composite::Unwrap(model); }

int composite_hybrid_input_count(const composite_hybrid* model) {
  return composite::Unwrap(model)->description().inputs();
}

int composite_hybrid_output_count(const composite_hybrid* model) {
  return composite::Unwrap(model)->description().outputs();
}

const char* composite_hybrid_description(const composite_hybrid* model) {
  return composite::Unwrap(model)->description().json().c_str();
}

int composite_call_hybrid(composite_hybrid* model, TF_Tensor* const* inputs, int input_count,
                          TF_Tensor** outputs, int output_count, char* error, size_t error_size) {
  return composite::Answer(error, error_size, [&] {
    return composite::Call(composite::Unwrap(model), inputs, input_count, outputs, output_count);
  });
}

}  // extern "C"
