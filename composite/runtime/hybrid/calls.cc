#include "composite/runtime/hybrid/calls.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/hybrid/transfer.h"
#include "composite/runtime/run/kernel_call.h"
#include "composite/runtime/run/kernel_host.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/public/session_options.h"

namespace composite {
namespace {

using tensorflow::Tensor;
using tvm_abi::Any;

thread_local absl::Status failure;

absl::StatusOr<tvm_ffi::Value> Noted(absl::StatusOr<tvm_ffi::Value> answer) {
  if (!answer.ok()) failure = answer.status();
  return answer;
}

// The CPU as TensorFlow's sessions have it, whose threads all sessions of the process share.
tensorflow::DeviceBase* HostDevice() {
  static tensorflow::Device* const device =
      tensorflow::DeviceFactory::NewDevice("CPU", tensorflow::SessionOptions(),
                                           "/job:localhost/replica:0/task:0")
          .release();
  return device;
}

// The values in an array of TVM's.
absl::StatusOr<tvm_ffi::Value> ArrayOf(absl::Span<const Tensor> tensors) {
  TF_ASSIGN_OR_RETURN(const TvmValues values, ToTvm(tensors));
  return tvm_ffi::ArrayOf(values.all);
}

absl::StatusOr<tvm_ffi::Value> RunPart(const HybridPart& part, absl::Span<const Any> arguments) {
  TF_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, ToTensorFlow(arguments));
  TF_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, part.Run(inputs));
  return ArrayOf(outputs);
}

// The same handles in memory that nobody else counts references to.
Tensor OwnHandles(const Tensor& tensor) {
  if (tensor.dtype() != tensorflow::DT_RESOURCE) return tensor;
  Tensor own(tensor.dtype(), tensor.shape());
  own.flat<tensorflow::ResourceHandle>() = tensor.flat<tensorflow::ResourceHandle>();
  return own;
}

// Stands for the elements of a tensor that no kernel reads. TVM's checks want an address.
alignas(tvm_abi::kAlignment) char unread[tvm_abi::kAlignment];

// What a kernel takes: tensors, of which one that it does not read is passed as a shape and a
// dtype.
absl::StatusOr<std::vector<tvm_abi::Tensor>> KernelArguments(absl::string_view kernel,
                                                             absl::Span<const Any> arguments) {
  std::vector<tvm_abi::Tensor> tensors;
  tensors.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Any& argument = arguments[i];
    if (argument.type_index == tvm_ffi::kTensor) {
      tensors.push_back(tvm_ffi::TensorOf(argument));
    } else if (argument.type_index == tvm_ffi::kShape && i + 1 < arguments.size() &&
               arguments[i + 1].type_index == tvm_ffi::kDataType) {
      const absl::Span<const int64_t> shape = tvm_ffi::ShapeOf(argument);
      tensors.push_back({unread,
                         {tvm_abi::kCpu, 0},
                         static_cast<int32_t>(shape.size()),
                         tvm_ffi::DtypeOf(arguments[++i]),
                         const_cast<int64_t*>(shape.data()),
                         nullptr,
                         0});
    } else {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel, " takes tensors alone"));
    }
  }
  return tensors;
}

// Has TensorFlow fill the outputs of a kernel.
absl::Status RunPartInto(const HybridPart& part, absl::Span<const Any> inputs,
                         absl::Span<const Any> outputs) {
  TF_ASSIGN_OR_RETURN(const std::vector<Tensor> given, ToTensorFlow(inputs));
  TF_ASSIGN_OR_RETURN(const std::vector<Tensor> results, part.Run(given));
  for (size_t i = 0; i < outputs.size(); ++i) {
    TF_ASSIGN_OR_RETURN(Tensor room, ToTensorFlow(outputs[i]));
    if (room.shape() != results[i].shape() || room.dtype() != results[i].dtype()) {
      return absl::InternalError(absl::StrCat("output ", i, " of a region is ",
                                              results[i].shape().DebugString(), " and ",
                                              room.shape().DebugString(), " by its kernel"));
    }
    std::memcpy(room.data(), results[i].data(), room.TotalBytes());
  }
  return absl::OkStatus();
}

absl::Status RunKernel(absl::string_view name, tvm_abi::Function function, bool barriers,
                       absl::Span<const Any> arguments) {
  TF_ASSIGN_OR_RETURN(std::vector<tvm_abi::Tensor> tensors, KernelArguments(name, arguments));
  KernelHost device(HostDevice());
  tvm_abi::Host host = device.host(barriers);
  host.workspace = nullptr;  // TensorFlow's allocator locks, the C++ heap does not
  tvm_abi::Error error;
  const int count = static_cast<int>(tensors.size());
  if (tvm_abi::Call(function, host, tensors.data(), count, &error)) return absl::OkStatus();
  return KernelError(name, error);
}

}  // namespace

absl::StatusOr<tvm_ffi::Value> HybridCalls::CallTf(absl::Span<const Any> arguments) {
  return Noted([&]() -> absl::StatusOr<tvm_ffi::Value> {
    if (arguments.size() < 2) return absl::InvalidArgumentError("call_tf: no graph");
    TF_ASSIGN_OR_RETURN(const HybridPart* part, PartOf(arguments[0], arguments[1]));
    return RunPart(*part, arguments.subspan(2));
  }());
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::CallTfOnce(absl::Span<const Any> arguments) {
  return Noted([&]() -> absl::StatusOr<tvm_ffi::Value> {
    if (arguments.size() < 2) return absl::InvalidArgumentError("call_tf_once: no graph");
    const absl::string_view digest = tvm_ffi::TextOf(arguments[0]);
    auto known = kept_.find(digest);
    if (known == kept_.end()) {
      TF_ASSIGN_OR_RETURN(ModuleParts::Tensors made, module_->parts.Kept(digest, arguments[1], [&] {
        return ToTensorFlow(arguments.subspan(2));
      }));
      for (Tensor& one : made) one = OwnHandles(one);
      TF_ASSIGN_OR_RETURN(tvm_ffi::Value values, ArrayOf(made));
      known = kept_.emplace(std::string(digest), std::move(values)).first;
    }
    return tvm_ffi::Value::Shared(known->second.any().v_ptr);
  }());
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::CallKernel(absl::Span<const Any> arguments) {
  return Noted([&]() -> absl::StatusOr<tvm_ffi::Value> {
    constexpr size_t kBefore = 7;
    if (arguments.size() < kBefore) return absl::InvalidArgumentError("call_kernel: no kernel");
    const absl::string_view name = tvm_ffi::TextOf(arguments[1]);
    const auto kernel = module_->kernels.find(name);
    if (kernel == module_->kernels.end()) {
      return absl::InvalidArgumentError(absl::StrCat("the module has no kernel ", name));
    }
    const absl::Span<const Any> all = arguments.subspan(kBefore);
    const size_t inputs = arguments[5].v_int64, outputs = arguments[6].v_int64;
    if (inputs > all.size() || outputs > all.size() - inputs) {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", name, " has too few arguments"));
    }
    absl::Status status = RunKernel(name, kernel->second, arguments[2].v_int64 != 0, all);
    if (absl::IsOutOfRange(status) && !tvm_ffi::TextOf(arguments[3]).empty()) {
      TF_ASSIGN_OR_RETURN(const HybridPart* part, PartOf(arguments[3], arguments[4]));
      status = RunPartInto(*part, all.first(inputs), all.subspan(inputs, outputs));
    }
    TF_RETURN_IF_ERROR(status);
    return tvm_ffi::Value();
  }());
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::Memory(absl::Span<const Any> arguments) {
  if (arguments.size() != 2) return Noted(absl::InvalidArgumentError("memory: not 2 arguments"));
  return Noted(NewTensor(tvm_ffi::ShapeOf(arguments[0]), tvm_ffi::DtypeOf(arguments[1])));
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::Sizes(absl::Span<const Any> arguments) {
  if (arguments.size() != 2) return Noted(absl::InvalidArgumentError("sizes: not 2 arguments"));
  constexpr tvm_abi::DataType kInt64 = {tvm_abi::kInt, 64, 1};
  return Noted(NewTensor({arguments[1].v_int64}, kInt64));
}

absl::StatusOr<tvm_ffi::Value> HybridCalls::Require(absl::Span<const Any> arguments) {
  if (arguments.size() != 3) return Noted(absl::InvalidArgumentError("require: not 3 arguments"));
  const int64_t size = arguments[0].v_int64, least = arguments[1].v_int64;
  if (size >= least) return tvm_ffi::Value();
  const absl::string_view region = tvm_ffi::TextOf(arguments[2]);
  return Noted(absl::InvalidArgumentError(
      absl::StrCat("a dim of the call is ", size, ", and the kernel of region ", region, " takes ",
                   least, " or more: compile the model with deny=[\"region:", region, "\"]")));
}

absl::StatusOr<const HybridPart*> HybridCalls::PartOf(const Any& digest, const Any& graph) {
  const absl::string_view key = tvm_ffi::TextOf(digest);
  const auto known = parts_.find(key);
  if (known != parts_.end()) return known->second;
  TF_ASSIGN_OR_RETURN(const HybridPart* part, module_->parts.Find(key, graph));
  return parts_.emplace(std::string(key), part).first->second;
}

absl::Status HybridCalls::TakeFailure() { return std::exchange(failure, absl::OkStatus()); }

}  // namespace composite
