// What XLA's code for the CPU gives the functions that it calls: its threads, and memory.
#ifndef COMPOSITE_RUNTIME_XLA_HOST_H_
#define COMPOSITE_RUNTIME_XLA_HOST_H_

#include <cstddef>
#include <functional>
#include <utility>

#include "composite/runtime/launch/pool.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/allocator.h"
#include "xla/ffi/api/ffi.h"

namespace xla::ffi {
// As xla/ffi/ffi_api.h declares it, which includes headers of MLIR that the wheel lacks.
const XLA_FFI_Api* GetXlaFfiApi();
}  // namespace xla::ffi

namespace composite {

class XlaPool : public Pool {
 public:
  explicit XlaPool(xla::ffi::ThreadPool* threads)
      : threads_(threads), size_(static_cast<int>(threads->num_threads())) {}
  int size() const override { return size_; }
  void Schedule(std::function<void()> work) override { threads_->Schedule(std::move(work)); }

 private:
  xla::ffi::ThreadPool* const threads_;
  const int size_;
};

class CpuWorkspace : public tvm_abi::Workspace {
 public:
  void* Allocate(size_t bytes) override {
    return tensorflow::cpu_allocator()->AllocateRaw(tvm_abi::kAlignment, bytes);
  }
  void Free(void* block) override { tensorflow::cpu_allocator()->DeallocateRaw(block); }
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_HOST_H_
