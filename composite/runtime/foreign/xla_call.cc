#include "composite/runtime/foreign/xla_call.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/foreign/function.h"
#include "composite/runtime/foreign/library.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/xla/host.h"
#include "tensorflow/compiler/tf2xla/type_util.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "xla/ffi/api/ffi.h"

namespace composite {
namespace {

namespace ffi = xla::ffi;
using tensorflow::Tensor;

// The memory of a buffer of XLA's, which lives as long as the call.
class Borrowed : public tensorflow::TensorBuffer {
 public:
  explicit Borrowed(const ffi::AnyBuffer& buffer)
      : TensorBuffer(buffer.untyped_data()), size_(buffer.size_bytes()) {}
  size_t size() const override { return size_; }
  tensorflow::TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(static_cast<int64_t>(size_));
  }
  bool OwnsMemory() const override { return false; }

 private:
  const size_t size_;
};

// A tensor on the buffer, or where the function may keep it, or it is not aligned, one of its own.
absl::StatusOr<Tensor> TensorFor(const ffi::AnyBuffer& buffer, bool may_keep) {
  TF_ASSIGN_OR_RETURN(tensorflow::DataType dtype,
                      tensorflow::EncodePrimitiveTypeAsDataType(
                          static_cast<xla::PrimitiveType>(buffer.element_type())));
  const auto dims = buffer.dimensions();
  tensorflow::TensorShape shape;
  TF_RETURN_IF_ERROR(tensorflow::TensorShape::BuildTensorShape(
      absl::MakeConstSpan(dims.begin(), dims.size()), &shape));
  if (may_keep || !tvm_abi::IsAligned(buffer.untyped_data())) {
    Tensor own(dtype, shape);
    if (own.NumElements() == 0 || own.data() != nullptr) return own;
    return absl::ResourceExhaustedError("there is no memory for a copy of a tensor");
  }
  auto* borrowed = new Borrowed(buffer);
  Tensor tensor(dtype, shape, borrowed);
  borrowed->Unref();  // the tensor has it
  return tensor;
}

// Whether there was anything to copy.
bool Copy(const void* from, void* to, size_t bytes) {
  if (from == to || bytes == 0) return false;
  std::memcpy(to, from, bytes);
  return true;
}

absl::Status Run(ffi::ThreadPool threads, ffi::RemainingArgs args, ffi::RemainingRets rets,
                 std::string_view key, bool returns) {
  const size_t colon = key.find(':');
  const std::string name(key.substr(colon + 1));
  TF_ASSIGN_OR_RETURN(auto library, FindForeignLibrary(std::string(key.substr(0, colon))));
  TF_ASSIGN_OR_RETURN(ForeignLibrary::Found found, library->Find(name));
  const bool may_keep = found.function->may_keep_tensors();
  std::vector<Tensor> in, out;
  Inputs inputs;
  Outputs outputs;
  in.reserve(args.size());  // pointers to them are passed
  out.reserve(rets.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const ffi::AnyBuffer buffer = *args.get<ffi::AnyBuffer>(i);
    TF_ASSIGN_OR_RETURN(Tensor tensor, TensorFor(buffer, may_keep));
    if (Copy(buffer.untyped_data(), tensor.data(), tensor.TotalBytes())) {
      Count(GlobalStats().copies);
    }
    in.push_back(std::move(tensor));
    inputs.push_back(&in.back());
  }
  for (size_t i = 0; i < rets.size() && !returns; ++i) {
    TF_ASSIGN_OR_RETURN(Tensor tensor, TensorFor(**rets.get<ffi::AnyBuffer>(i), may_keep));
    out.push_back(std::move(tensor));
    outputs.push_back(&out.back());
  }
  if (returns) {
    std::vector<tensorflow::DataType> dtypes;
    for (size_t i = 0; i < rets.size(); ++i) {
      TF_ASSIGN_OR_RETURN(Tensor like, TensorFor(**rets.get<ffi::AnyBuffer>(i), false));
      dtypes.push_back(like.dtype());
    }
    TF_ASSIGN_OR_RETURN(out, found.function->Make(inputs, dtypes));
  } else {
    XlaPool pool(&threads);
    CpuWorkspace workspace;
    TF_RETURN_IF_ERROR(found.function->Fill({&pool, &workspace}, inputs, outputs));
  }
  for (size_t i = 0; i < rets.size(); ++i) {
    const ffi::AnyBuffer buffer = **rets.get<ffi::AnyBuffer>(i);
    const auto dims = buffer.dimensions();
    const absl::Span<const int64_t> expected(dims.begin(), dims.size());
    if (expected != absl::MakeConstSpan(out[i].shape().dim_sizes())) {
      return absl::InvalidArgumentError(absl::StrCat("function ", name, ": result ", i,
                                                     " has shape ", out[i].shape().DebugString(),
                                                     ", not the one that was compiled for"));
    }
    Copy(out[i].data(), buffer.untyped_data(), out[i].TotalBytes());
  }
  return absl::OkStatus();
}

ffi::Error Handle(ffi::ThreadPool threads, ffi::RemainingArgs args, ffi::RemainingRets rets,
                  std::string_view key, bool returns) {
  const absl::Status status = Run(threads, args, rets, key, returns);
  if (status.ok()) return ffi::Error::Success();
  return ffi::Error(static_cast<ffi::ErrorCode>(status.code()), std::string(status.message()));
}

XLA_FFI_DEFINE_HANDLER(handler, Handle,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::ThreadPool>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attr<std::string_view>(kXlaFunction)
                           .Attr<bool>(kXlaReturns));
XLA_FFI_REGISTER_HANDLER(ffi::GetXlaFfiApi(), kXlaTarget, "Host", handler);

}  // namespace
}  // namespace composite
