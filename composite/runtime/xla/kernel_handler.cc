#include "composite/runtime/xla/kernel_handler.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/run/kernel_call.h"
#include "composite/runtime/xla/host.h"
#include "composite/runtime/xla/kernel_handles.h"
#include "tsl/profiler/lib/traceme.h"

namespace composite {
namespace {

namespace ffi = xla::ffi;

// The tensors of one call, which lie in buffers of XLA's, or in copies where the kernel needs
// another alignment.
class KernelTensors {
 public:
  KernelTensors(const XlaKernel& kernel, CpuWorkspace* memory) : kernel_(kernel), memory_(memory) {}
  ~KernelTensors() {
    for (const Copy& copy : copies_) memory_->Free(copy.own);
  }
  KernelTensors(const KernelTensors&) = delete;
  KernelTensors& operator=(const KernelTensors&) = delete;

  absl::Status Add(const ffi::AnyBuffer& buffer, bool is_output) {
    const size_t number = tensors_.size();
    const auto dims = buffer.dimensions();
    // The ABI has no const; kernels read the dims.
    tensors_.push_back({buffer.untyped_data(),
                        {tvm_abi::kCpu, 0},
                        static_cast<int32_t>(dims.size()),
                        kernel_.dtypes[number],
                        const_cast<int64_t*>(dims.begin()),
                        nullptr,
                        0});
    tvm_abi::Tensor& tensor = tensors_.back();
    if (reinterpret_cast<uintptr_t>(tensor.data) % kernel_.alignment == 0) return absl::OkStatus();
    void* own = memory_->Allocate(buffer.size_bytes());
    if (own == nullptr) {
      return absl::ResourceExhaustedError("there is no memory for a copy of a tensor");
    }
    if (!is_output) std::memcpy(own, tensor.data, buffer.size_bytes());
    copies_.push_back({own, tensor.data, buffer.size_bytes(), is_output});
    tensor.data = own;
    Count(GlobalStats().copies);
    return absl::OkStatus();
  }

  // Has the values of inputs that kernels take for sizes stand for their shapes.
  void SetSizes() {
    int64_t* dims = const_cast<int64_t*>(kernel_.in_shapes.dims.data());
    for (size_t i = 0; i < kernel_.in_shapes.ranks.size(); ++i) {
      const int rank = kernel_.in_shapes.ranks[i];
      if (rank == Signature::kOfValue) {
        tensors_[i].ndim = 1;
        tensors_[i].shape = dims;
      }
      dims += Signature::DimsOf(rank);
    }
  }

  void CopyBack() const {
    for (const Copy& copy : copies_) {
      if (copy.is_output) std::memcpy(copy.buffer, copy.own, copy.bytes);
    }
  }

  tvm_abi::Tensor* data() { return tensors_.data(); }
  int size() const { return static_cast<int>(tensors_.size()); }

 private:
  struct Copy {
    void* own;
    void* buffer;
    size_t bytes;
    bool is_output;
  };

  const XlaKernel& kernel_;
  CpuWorkspace* const memory_;
  absl::InlinedVector<tvm_abi::Tensor, 8> tensors_;
  std::vector<Copy> copies_;
};

absl::Status Launch(const XlaKernel& kernel, ffi::ThreadPool threads, ffi::RemainingArgs args,
                    ffi::RemainingRets rets) {
  if (args.size() + rets.size() != kernel.dtypes.size()) {
    return absl::InternalError(absl::StrCat("kernel ", kernel.name, " of ", kernel.op,
                                            " is called with other numbers of tensors"));
  }
  const tsl::profiler::TraceMe trace(
      [&] {
        return tsl::profiler::TraceMeEncode(absl::StrCat("kernel ", kernel.name),
                                            {{"op", kernel.op}, {"strategy", kernel.strategy}});
      },
      tsl::profiler::TraceMeLevel::kInfo);
  XlaPool pool(&threads);
  CpuWorkspace workspace;
  KernelTensors tensors(kernel, &workspace);
  for (size_t i = 0; i < args.size(); ++i) {
    absl::Status status = tensors.Add(*args.get<ffi::AnyBuffer>(i), /*is_output=*/false);
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < rets.size(); ++i) {
    absl::Status status = tensors.Add(**rets.get<ffi::AnyBuffer>(i), /*is_output=*/true);
    if (!status.ok()) return status;
  }
  tensors.SetSizes();
  tvm_abi::Error error;
  if (tvm_abi::Call(kernel.function, {&pool, &workspace, kernel.barriers}, tensors.data(),
                    tensors.size(), &error)) {
    tensors.CopyBack();
    return absl::OkStatus();
  }
  Count(GlobalStats().kernel_errors);
  return KernelError(absl::StrCat(kernel.name, " of ", kernel.op), error);
}

ffi::Error HandleKernel(ffi::ThreadPool threads, ffi::RemainingArgs args, ffi::RemainingRets rets,
                        std::string_view handle, bool counted) {
  const XlaKernel* kernel = FindForXla(absl::string_view(handle.data(), handle.size()));
  if (kernel == nullptr) {
    return ffi::Error(ffi::ErrorCode::kFailedPrecondition,
                      "XLA's code calls a kernel of another process: " + std::string(handle) +
                          "; compile with COMPOSITE_XLA=never what is to be kept");
  }
  if (counted) {
    Count(GlobalStats().kernel_launches);
    Count(GlobalStats().xla_kernel_launches);
  }
  const absl::Status status = Launch(*kernel, threads, args, rets);
  if (status.ok()) return ffi::Error::Success();
  return ffi::Error(static_cast<ffi::ErrorCode>(status.code()), std::string(status.message()));
}

XLA_FFI_DEFINE_HANDLER(kernel_handler, HandleKernel,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::ThreadPool>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attr<std::string_view>(kXlaHandle)
                           .Attr<bool>(kXlaCounted));
XLA_FFI_REGISTER_HANDLER(ffi::GetXlaFfiApi(), kXlaKernelTarget, "Host", kernel_handler);

}  // namespace
}  // namespace composite
