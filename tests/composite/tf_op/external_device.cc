// A device of TVM's that TensorFlow does not know (kDLExtDev), and functions that run on it.
//
// Its memory is no memory of the process: what it hands out are numbers, and whoever reads or
// writes there without the device ends in a fault.
#include <dlfcn.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

using tvm::Device;
using tvm::runtime::DeviceAPI;

constexpr int kDevices = 2;
constexpr uintptr_t kFirst = 64;  // nothing is mapped there

// What is asked of the device, in all of its instances.
struct Counts {
  int64_t allocated = 0, freed = 0, copied_there = 0, copied_back = 0, synchronized = 0;
};

class External : public DeviceAPI {
 public:
  static External* Global() {
    static auto* const device = new External;
    return device;
  }

  void SetDevice(Device) override {}
  void GetAttr(Device device, tvm::runtime::DeviceAttrKind kind, tvm::ffi::Any* value) override {
    if (kind == tvm::runtime::kExist) *value = int{device.device_id < kDevices};
  }
  void* AllocDataSpace(Device, size_t size, size_t, DLDataType) override {
    std::lock_guard<std::mutex> lock(mu_);
    ++counts.allocated;
    blocks_[next_] = std::vector<char>(size);
    return reinterpret_cast<void*>(next_++);
  }
  void FreeDataSpace(Device, void* address) override {
    std::lock_guard<std::mutex> lock(mu_);
    ++counts.freed;
    blocks_.erase(reinterpret_cast<uintptr_t>(address));
  }
  void StreamSync(Device, TVMStreamHandle) override { ++counts.synchronized; }

  float* Floats(tvm::ffi::TensorView tensor) {
    std::lock_guard<std::mutex> lock(mu_);
    return reinterpret_cast<float*>(
        blocks_.at(reinterpret_cast<uintptr_t>(tensor.data_ptr())).data());
  }

  Counts counts;

 protected:
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t size,
                      Device device_from, Device device_to, DLDataType, TVMStreamHandle) override {
    std::lock_guard<std::mutex> lock(mu_);
    const bool there = device_to.device_type == kDLExtDev;
    ++(there ? counts.copied_there : counts.copied_back);
    if (device_from.device_type == kDLExtDev) {
      from = blocks_.at(reinterpret_cast<uintptr_t>(from)).data();
    }
    if (there) to = blocks_.at(reinterpret_cast<uintptr_t>(to)).data();
    std::memcpy(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset,
                size);
  }

 private:
  std::mutex mu_;
  std::map<uintptr_t, std::vector<char>> blocks_;
  uintptr_t next_ = kFirst;
};

void Scale(tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
  if (x.device().device_type != kDLExtDev || y.device().device_type != kDLExtDev) {
    TVM_FFI_THROW(ValueError) << "the tensors are not on the external device";
  }
  const float* from = External::Global()->Floats(x);
  float* to = External::Global()->Floats(y);
  const int64_t size = x.numel();
  const float by = static_cast<float>(2 + x.device().device_id);
  for (int64_t i = 0; i < size; ++i) to[i] = by * from[i];
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, Scale);

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("device_api.ext_dev", [] { return static_cast<void*>(External::Global()); })
      .def("testing.external_counts", [] {
        const Counts& counts = External::Global()->counts;
        return tvm::ffi::Shape({counts.allocated - counts.freed, counts.copied_there,
                                counts.copied_back, counts.synchronized});
      });
}
