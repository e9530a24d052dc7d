#include "composite/runtime/foreign/function.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "composite/runtime/foreign/dlpack.h"
#include "composite/runtime/run/kernel_call.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;

constexpr tvm_abi::Device kHost = {tvm_abi::kCpu, 0};

absl::StatusOr<Tensor> Copy(const tvm_abi::Any& result, DataType dtype) {
  if (result.type_index != tvm_ffi::kTensor) {
    return absl::InvalidArgumentError(
        absl::StrCat("no tensor (type ", result.type_index, " of TVM's objects)"));
  }
  const tvm_abi::Tensor& from = tvm_ffi::TensorOf(result);
  TF_ASSIGN_OR_RETURN(const DataType found, DtypeOfHostTensor(from));
  if (found != dtype) {
    return absl::InvalidArgumentError(absl::StrCat("not ", tensorflow::DataTypeString(dtype),
                                                   " but ", tensorflow::DataTypeString(found)));
  }
  tensorflow::TensorShape shape;
  TF_RETURN_IF_ERROR(tensorflow::TensorShape::BuildTensorShape(
      absl::MakeConstSpan(from.shape, from.ndim), &shape));
  Tensor copy(dtype, shape);
  if (copy.NumElements() == 0) return copy;
  if (copy.data() == nullptr) return absl::ResourceExhaustedError("too large: there is no memory");
  std::memcpy(copy.data(), static_cast<const char*>(from.data) + from.byte_offset,
              copy.TotalBytes());
  return copy;
}

}  // namespace

absl::Status KernelFunction::Fill(const tvm_abi::Host& host, const Inputs& inputs,
                                  const Outputs& outputs) const {
  absl::InlinedVector<const Tensor*, 8> all(inputs.begin(), inputs.end());
  all.insert(all.end(), outputs.begin(), outputs.end());
  size_t count = 0;
  for (const Tensor* tensor : all) count += tensor->dims();
  absl::InlinedVector<int64_t, 24> dims;
  dims.reserve(count);  // descriptions point into it
  absl::InlinedVector<tvm_abi::Tensor, 8> tensors;
  for (const Tensor* tensor : all) {
    int64_t* const own = dims.data() + dims.size();
    for (int d = 0; d < tensor->dims(); ++d) dims.push_back(tensor->dim_size(d));
    tensors.push_back(DescribeTensor(*tensor, own));
  }
  return Call(host, absl::MakeSpan(tensors));
}

absl::Status KernelFunction::Run(const tvm_abi::Host& host,
                                 absl::Span<const tvm_abi::Any> tensors) const {
  absl::InlinedVector<tvm_abi::Tensor, 8> described;
  for (const tvm_abi::Any& tensor : tensors) described.push_back(tvm_ffi::TensorOf(tensor));
  return Call(host, absl::MakeSpan(described));
}

absl::Status KernelFunction::Call(const tvm_abi::Host& host,
                                  absl::Span<tvm_abi::Tensor> tensors) const {
  tvm_abi::Error error;
  if (tvm_abi::Call(function_, host, tensors.data(), static_cast<int>(tensors.size()), &error)) {
    return absl::OkStatus();
  }
  return KernelError(name_, error);
}

absl::Status KernelFunction::FillOn(const DeviceStream&, const Inputs&, const Outputs&) const {
  return absl::InvalidArgumentError(
      absl::StrCat(name_, " is a kernel for the CPU: call it without device=\"GPU\""));
}

absl::StatusOr<std::vector<Tensor>> KernelFunction::Make(const Inputs&,
                                                         absl::Span<const DataType>) const {
  return absl::InvalidArgumentError(absl::StrCat(
      name_, " is a kernel, which fills outputs and returns none: call it without returns=True"));
}

absl::StatusOr<tvm_ffi::Value> ObjectFunction::Call(const Inputs& inputs, const Outputs& outputs,
                                                    tvm_abi::Device device) const {
  absl::InlinedVector<const Tensor*, 8> all(inputs.begin(), inputs.end());
  all.insert(all.end(), outputs.begin(), outputs.end());
  std::vector<tvm_ffi::Value> values;
  absl::InlinedVector<tvm_abi::Any, 8> arguments;
  for (const Tensor* tensor : all) {
    TF_ASSIGN_OR_RETURN(tvm_ffi::Value value, tvm_ffi::Value::OfTensor(*tensor, device));
    arguments.push_back(value.any());
    values.push_back(std::move(value));
  }
  return Call(arguments);
}

absl::StatusOr<tvm_ffi::Value> ObjectFunction::Call(
    absl::Span<const tvm_abi::Any> arguments) const {
  if (serial_ == nullptr) return tvm_ffi::Call(name_, function_, arguments);
  std::lock_guard<std::recursive_mutex> lock(*serial_);
  return tvm_ffi::Call(name_, function_, arguments);
}

absl::Status ObjectFunction::Run(const tvm_abi::Host&,
                                 absl::Span<const tvm_abi::Any> tensors) const {
  return Call(tensors).status();
}

absl::Status ObjectFunction::Fill(const tvm_abi::Host&, const Inputs& inputs,
                                  const Outputs& outputs) const {
  return Call(inputs, outputs, kHost).status();
}

absl::Status ObjectFunction::FillOn(const DeviceStream& stream, const Inputs& inputs,
                                    const Outputs& outputs) const {
  const tvm_ffi::StreamScope scope(stream.device, stream.stream);
  return Call(inputs, outputs, stream.device).status();
}

absl::StatusOr<std::vector<Tensor>> ObjectFunction::Make(const Inputs& inputs,
                                                         absl::Span<const DataType> dtypes) const {
  TF_ASSIGN_OR_RETURN(tvm_ffi::Value result, Call(inputs, {}, kHost));
  absl::Span<const tvm_abi::Any> results = absl::MakeConstSpan(&result.any(), 1);
  if (result.type() == tvm_ffi::kArray) results = result.elements();
  if (result.type() == tvm_abi::kNone) results = {};
  if (results.size() != dtypes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name_, " returned ", results.size(),
                                                   " tensors, not ", dtypes.size(),
                                                   ": output_dtype has one for each"));
  }
  std::vector<Tensor> made;
  for (size_t i = 0; i < results.size(); ++i) {
    absl::StatusOr<Tensor> copy = Copy(results[i], dtypes[i]);
    if (!copy.ok()) {
      return absl::Status(copy.status().code(), absl::StrCat("result ", i, " of ", name_, " is ",
                                                             copy.status().message()));
    }
    made.push_back(*std::move(copy));
  }
  return made;
}

}  // namespace composite
