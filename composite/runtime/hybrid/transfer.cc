#include "composite/runtime/hybrid/transfer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/foreign/dlpack.h"
#include "composite/runtime/kernels/dtypes.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorBuffer;

constexpr tvm_abi::Device kHost = {tvm_abi::kCpu, 0};

// The memory of a tensor of TVM, which it keeps. TVM may have it too: no op may write there, which
// TensorFlow lets ops do where they alone have memory that is the tensor's own.
class TvmMemory : public TensorBuffer {
 public:
  TvmMemory(tvm_ffi::Value owner, void* data, size_t size)
      : TensorBuffer(data), owner_(std::move(owner)), size_(size) {}
  size_t size() const override { return size_; }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(static_cast<int64_t>(size_));
  }
  bool OwnsMemory() const override { return false; }

 private:
  const tvm_ffi::Value owner_;
  const size_t size_;
};

class HeapMemory : public TensorBuffer {
 public:
  HeapMemory(void* data, size_t size) : TensorBuffer(data), size_(size) {}
  ~HeapMemory() override { std::free(data()); }
  size_t size() const override { return size_; }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(static_cast<int64_t>(size_));
  }

 private:
  const size_t size_;
};

absl::StatusOr<tvm_ffi::Value> ValueOf(const Tensor& tensor) {
  if (ToDlpack(tensor.dtype()).code == kNoAbiCode) return tvm_ffi::Value::OfOpaque(tensor);
  if (tvm_abi::IsAligned(tensor.data())) return tvm_ffi::Value::OfTensor(tensor, kHost);
  return tvm_ffi::Value::OfTensor(tensorflow::tensor::DeepCopy(tensor), kHost);
}

}  // namespace

absl::StatusOr<TvmValues> ToTvm(absl::Span<const Tensor> tensors) {
  TvmValues made;
  for (const Tensor& tensor : tensors) {
    TF_ASSIGN_OR_RETURN(tvm_ffi::Value value, ValueOf(tensor));
    made.all.push_back(value.any());
    made.owned.push_back(std::move(value));
  }
  return made;
}

absl::StatusOr<tvm_ffi::Value> NewTensor(absl::Span<const int64_t> dims, tvm_abi::DataType dtype) {
  TF_ASSIGN_OR_RETURN(const tensorflow::DataType type,
                      DtypeOfHostTensor({nullptr, kHost, 0, dtype, nullptr, nullptr, 0}));
  tensorflow::TensorShape shape;
  TF_RETURN_IF_ERROR(tensorflow::TensorShape::BuildTensorShape(dims, &shape));
  size_t size = tensorflow::DataTypeSize(type);
  void* data = nullptr;
  if (!__builtin_mul_overflow(size, static_cast<size_t>(shape.num_elements()), &size)) {
    data = tvm_abi::AllocateAligned(size);
  }
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for a tensor of shape ", shape.DebugString()));
  }
  tensorflow::core::RefCountPtr<TensorBuffer> memory(new HeapMemory(data, size));
  return tvm_ffi::Value::OfTensor(Tensor(type, std::move(shape), std::move(memory)), kHost);
}

absl::StatusOr<std::vector<Tensor>> ToTensorFlow(absl::Span<const tvm_abi::Any> values) {
  std::vector<Tensor> made;
  for (const tvm_abi::Any& value : values) {
    TF_ASSIGN_OR_RETURN(Tensor tensor, ToTensorFlow(value));
    made.push_back(std::move(tensor));
  }
  return made;
}

absl::StatusOr<Tensor> ToTensorFlow(const tvm_abi::Any& value) {
  if (const Tensor* opaque = tvm_ffi::OpaqueOf(value)) return *opaque;
  if (value.type_index != tvm_ffi::kTensor) {
    return absl::InvalidArgumentError(
        absl::StrCat("no tensor, but an object of TVM's type ", value.type_index));
  }
  const tvm_abi::Tensor& from = tvm_ffi::TensorOf(value);
  TF_ASSIGN_OR_RETURN(const tensorflow::DataType dtype, DtypeOfHostTensor(from));
  tensorflow::TensorShape shape;
  TF_RETURN_IF_ERROR(tensorflow::TensorShape::BuildTensorShape(
      absl::MakeConstSpan(from.shape, from.ndim), &shape));
  char* const data = static_cast<char*>(from.data) + from.byte_offset;
  const size_t size = shape.num_elements() * tensorflow::DataTypeSize(dtype);
  if (size != 0 && tvm_abi::IsAligned(data)) {
    auto* memory = new TvmMemory(tvm_ffi::Value::Shared(value.v_ptr), data, size);
    return Tensor(dtype, std::move(shape), tensorflow::core::RefCountPtr<TensorBuffer>(memory));
  }
  Tensor copy(dtype, shape);
  if (size == 0) return copy;
  if (copy.data() == nullptr) return absl::ResourceExhaustedError("there is no memory for a copy");
  std::memcpy(copy.data(), data, size);
  return copy;
}

}  // namespace composite
