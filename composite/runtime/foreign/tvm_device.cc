#include "composite/runtime/foreign/tvm_device.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/foreign/dlpack.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

// DLDeviceType, by TVM's names: those with memory of their own.
const std::map<std::string, int32_t>& DeviceTypes() {
  static const auto* const types = new std::map<std::string, int32_t>{
      {"opencl", 4},  {"vulkan", 7},  {"metal", 8},    {"vpi", 9},   {"rocm", 10}, {"ext_dev", 12},
      {"oneapi", 14}, {"webgpu", 15}, {"hexagon", 16}, {"maia", 17}, {"trn", 18}};
  return *types;
}

// An argument that is a struct, in the place of a number.
template <typename T>
tvm_abi::Any Packed(int32_t type_index, const T& value) {
  static_assert(sizeof(T) <= sizeof(int64_t), "a value, and not a pointer to one");
  tvm_abi::Any any{type_index, 0, {0}};
  std::memcpy(&any.v_int64, &value, sizeof value);
  return any;
}

tvm_abi::Any Pointer(void* address) {
  tvm_abi::Any any{tvm_ffi::kPointer, 0, {0}};
  any.v_ptr = address;
  return any;
}

// Copies all of a tensor by a function of TVM's runtime.
absl::Status CopyBy(const char* function, const tvm_abi::Any& there,
                    const tensorflow::Tensor& here) {
  const auto size = static_cast<int64_t>(here.TotalBytes());
  if (size == 0) return absl::OkStatus();
  const tvm_abi::Any arguments[] = {there, Pointer(here.data()), tvm_ffi::Int(size)};
  return tvm_ffi::CallGlobal(function, arguments).status();
}

}  // namespace

absl::StatusOr<tvm_abi::Device> FindTvmDevice(absl::string_view name,
                                              const tvm_ffi::Libraries& libraries) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits(':', 1));
  const auto type = DeviceTypes().find(parts.first);
  int32_t number = 0;
  const bool has_number = name.find(':') != absl::string_view::npos;
  if (type == DeviceTypes().end() ||
      (has_number && (!absl::SimpleAtoi(parts.second, &number) || number < 0))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no device is called ", name, ": functions run on CPU, GPU, or by TVM's name and a number ",
        "(ext_dev:0) on ",
        absl::StrJoin(DeviceTypes(), ", ",
                      [](std::string* out, const auto& one) { absl::StrAppend(out, one.first); })));
  }
  TF_RETURN_IF_ERROR(tvm_ffi::Load(libraries, /*with_runtime=*/true));
  constexpr int64_t kExist = 0;
  const tvm_abi::Any asked[] = {tvm_ffi::Int(type->second), tvm_ffi::Int(number),
                                tvm_ffi::Int(kExist)};
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value exists,
                      tvm_ffi::CallGlobal("runtime.GetDeviceAttr", asked));
  if (exists.type() != tvm_abi::kNone && exists.any().v_int64 != 0) {
    return tvm_abi::Device{type->second, number};
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "TVM has no device ", name, " in this process: load the library that registers it (as the ",
      "global function device_api.", parts.first, ") before"));
}

absl::StatusOr<DeviceTensors> DeviceTensors::Of(tvm_abi::Device device, const Inputs& inputs,
                                                const Outputs& outputs) {
  DeviceTensors tensors;
  for (const tensorflow::Tensor* input : inputs) {
    TF_RETURN_IF_ERROR(tensors.Allocate(device, *input));
    TF_RETURN_IF_ERROR(CopyBy("runtime.TVMTensorCopyFromBytes", tensors.all_.back(), *input));
    Count(GlobalStats().copies);
  }
  for (const tensorflow::Tensor* output : outputs) {
    TF_RETURN_IF_ERROR(tensors.Allocate(device, *output));
  }
  return tensors;
}

absl::Status DeviceTensors::Allocate(tvm_abi::Device device, const tensorflow::Tensor& like) {
  std::vector<tvm_abi::Any> dims;
  for (const int64_t dim : like.shape().dim_sizes()) dims.push_back(tvm_ffi::Int(dim));
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value shape, tvm_ffi::CallGlobal("ffi.Shape", dims));
  const tvm_abi::Any scope{tvm_abi::kNone, 0, {0}};
  const tvm_abi::Any arguments[] = {shape.any(), Packed(tvm_ffi::kDataType, ToDlpack(like.dtype())),
                                    Packed(tvm_ffi::kDevice, device), scope};
  TF_ASSIGN_OR_RETURN(tvm_ffi::Value made,
                      tvm_ffi::CallGlobal("runtime.TVMTensorAllocWithScope", arguments));
  all_.push_back(made.any());
  owned_.push_back(std::move(made));
  return absl::OkStatus();
}

absl::Status DeviceTensors::CopyBack(const Outputs& outputs) const {
  const size_t first = all_.size() - outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    TF_RETURN_IF_ERROR(CopyBy("runtime.TVMTensorCopyToBytes", all_[first + i], *outputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace composite
