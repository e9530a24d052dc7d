// What a device of TensorFlow gives a kernel to run on, for one call: its threads, its memory.
#ifndef COMPOSITE_RUNTIME_RUN_KERNEL_HOST_H_
#define COMPOSITE_RUNTIME_RUN_KERNEL_HOST_H_

#include <cstddef>
#include <functional>
#include <utility>

#include "composite/runtime/launch/pool.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace composite {

// Lives as long as the call, which is as long as a launch needs it.
class KernelHost {
 public:
  explicit KernelHost(tensorflow::DeviceBase* device)
      : pool_(device->tensorflow_cpu_worker_threads()), workspace_(device) {}
  KernelHost(const KernelHost&) = delete;
  KernelHost& operator=(const KernelHost&) = delete;

  // `barriers`: whether loops of the kernel may have some.
  tvm_abi::Host host(bool barriers = true) { return {&pool_, &workspace_, barriers}; }

 private:
  class IntraOpPool : public Pool {
   public:
    explicit IntraOpPool(const tensorflow::DeviceBase::CpuWorkerThreads* threads)
        : threads_(threads) {}
    int size() const override { return threads_ == nullptr ? 1 : threads_->num_threads; }
    void Schedule(std::function<void()> work) override {
      threads_->workers->Schedule(std::move(work));
    }

   private:
    const tensorflow::DeviceBase::CpuWorkerThreads* threads_;
  };

  class DeviceWorkspace : public tvm_abi::Workspace {
   public:
    explicit DeviceWorkspace(tensorflow::DeviceBase* device) : device_(device) {}
    void* Allocate(size_t bytes) override {
      return allocator()->AllocateRaw(tvm_abi::kAlignment, bytes);
    }
    void Free(void* block) override { allocator()->DeallocateRaw(block); }

   private:
    tensorflow::Allocator* allocator() {
      return device_->GetAllocator(tensorflow::AllocatorAttributes());
    }
    tensorflow::DeviceBase* const device_;
  };

  IntraOpPool pool_;
  DeviceWorkspace workspace_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_KERNEL_HOST_H_
