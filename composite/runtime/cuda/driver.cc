#include "composite/runtime/cuda/driver.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"

namespace composite {
namespace {

constexpr char kEnvironment[] = "COMPOSITE_CUDA_DRIVER";
constexpr char kLibrary[] = "libcuda.so.1";

// Of CUresult and CUdevice_attribute in cuda.h.
constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 2;
constexpr int kMultiprocessors = 16;
constexpr int kMajor = 75;
constexpr int kMinor = 76;
constexpr int kMostDynamicShared = 8;        // CUfunction_attribute
constexpr unsigned kSharedOfAny = 48 << 10;  // bytes that a launch may give without it

using Address = unsigned long long;  // CUdeviceptr

void* Pointer(Address address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }
Address AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

// The driver's functions, as cuda.h declares them.
struct CudaDriver::Functions {
  int (*init)(unsigned);
  int (*error_name)(int, const char**);
  int (*device)(int*, int);
  int (*device_count)(int*);
  int (*device_attribute)(int*, int, int);
  int (*primary_context)(void**, int);
  int (*stream_context)(void*, void**);
  int (*push_context)(void*);
  int (*pop_context)(void**);
  int (*context_device)(int*);
  int (*load_module)(void**, const void*);
  int (*find_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*launch_together)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void*, void**);
  int (*set_attribute)(void*, int, int);
  int (*allocate)(Address*, size_t);
  int (*free)(Address);
  int (*copy_to_device)(Address, const void*, size_t);
  int (*copy_to_host)(void*, Address, size_t);
  int (*synchronize)(void*);
};

const absl::StatusOr<const CudaDriver*>& CudaDriver::Get() {
  static const auto* const driver = new absl::StatusOr<const CudaDriver*>(Open());
  return *driver;
}

absl::StatusOr<const CudaDriver*> CudaDriver::Open() {
  const char* named = std::getenv(kEnvironment);
  const bool is_named = named != nullptr && *named != '\0';
  const char* name = is_named ? named : kLibrary;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("no driver for GPUs: ", dlerror()));
  }
  auto functions = std::make_unique<Functions>();
  const char* missing = nullptr;
  const auto find = [&](auto* function, const char* symbol) {
    void* found = dlsym(library, symbol);
    if (found == nullptr) missing = symbol;
    *reinterpret_cast<void**>(function) = found;
  };
  find(&functions->init, "cuInit");
  find(&functions->error_name, "cuGetErrorName");
  find(&functions->device, "cuDeviceGet");
  find(&functions->device_count, "cuDeviceGetCount");
  find(&functions->device_attribute, "cuDeviceGetAttribute");
  find(&functions->primary_context, "cuDevicePrimaryCtxRetain");
  find(&functions->stream_context, "cuStreamGetCtx");
  find(&functions->push_context, "cuCtxPushCurrent_v2");
  find(&functions->pop_context, "cuCtxPopCurrent_v2");
  find(&functions->context_device, "cuCtxGetDevice");
  find(&functions->load_module, "cuModuleLoadData");
  find(&functions->find_function, "cuModuleGetFunction");
  find(&functions->launch, "cuLaunchKernel");
  find(&functions->launch_together, "cuLaunchCooperativeKernel");
  find(&functions->set_attribute, "cuFuncSetAttribute");
  find(&functions->allocate, "cuMemAlloc_v2");
  find(&functions->free, "cuMemFree_v2");
  find(&functions->copy_to_device, "cuMemcpyHtoD_v2");
  find(&functions->copy_to_host, "cuMemcpyDtoH_v2");
  find(&functions->synchronize, "cuStreamSynchronize");
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("no driver for GPUs: ", name, " has no ",
                                                      missing, ": it is older than CUDA 12"));
  }
  auto driver = std::unique_ptr<CudaDriver>(new CudaDriver(functions.release(), is_named));
  absl::Status status = driver->Check(driver->functions_->init(0), "cuInit");
  if (!status.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("no GPU: ", status.message()));
  }
  return driver.release();
}

absl::Status CudaDriver::Check(int result, const char* function) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const bool known = functions_->error_name(result, &name) == kSuccess && name != nullptr;
  return absl::Status(
      result == kOutOfMemory ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal,
      absl::StrCat(function, " answers ", known ? name : "an error without a name", " (", result,
                   ")"));
}

absl::StatusOr<CudaDevice> CudaDriver::Describe(void* context, int device) const {
  int major = 0, minor = 0;
  CudaDevice found;
  found.context = context;
  found.number = device;
  const struct {
    int attribute;
    int* value;
  } asked[] = {{kMajor, &major}, {kMinor, &minor}, {kMultiprocessors, &found.multiprocessors}};
  for (const auto& one : asked) {
    absl::Status status = Check(functions_->device_attribute(one.value, one.attribute, device),
                                "cuDeviceGetAttribute");
    if (!status.ok()) return status;
  }
  found.level = 10 * major + minor;
  return found;
}

absl::StatusOr<CudaDevice> CudaDriver::DeviceOfStream(void* stream) const {
  void* context = nullptr;
  absl::Status status = Check(functions_->stream_context(stream, &context), "cuStreamGetCtx");
  if (!status.ok()) return status;
  const CudaScope scope(*this, context);
  if (!scope.status().ok()) return scope.status();
  int device = 0;
  status = Check(functions_->context_device(&device), "cuCtxGetDevice");
  if (!status.ok()) return status;
  return Describe(context, device);
}

absl::StatusOr<CudaDevice> CudaDriver::DeviceAt(int ordinal) const {
  int count = 0, device = 0;
  absl::Status status = Check(functions_->device_count(&count), "cuDeviceGetCount");
  if (!status.ok()) return status;
  if (ordinal >= count) return absl::NotFoundError(absl::StrCat("there are ", count, " GPUs"));
  status = Check(functions_->device(&device, ordinal), "cuDeviceGet");
  if (!status.ok()) return status;
  void* context = nullptr;
  status = Check(functions_->primary_context(&context, device), "cuDevicePrimaryCtxRetain");
  if (!status.ok()) return status;
  return Describe(context, device);
}

absl::StatusOr<void*> CudaDriver::Load(const std::string& image) const {
  void* module = nullptr;
  absl::Status status = Check(functions_->load_module(&module, image.c_str()), "cuModuleLoadData");
  if (!status.ok()) return status;
  return module;
}

absl::StatusOr<void*> CudaDriver::Find(void* module, const std::string& function) const {
  void* found = nullptr;
  absl::Status status =
      Check(functions_->find_function(&found, module, function.c_str()), "cuModuleGetFunction");
  if (!status.ok()) return status;
  return found;
}

absl::Status CudaDriver::Launch(const CudaLaunch& launch, void* stream) const {
  if (launch.shared > kSharedOfAny) {
    absl::Status status = Check(functions_->set_attribute(launch.function, kMostDynamicShared,
                                                          static_cast<int>(launch.shared)),
                                "cuFuncSetAttribute");
    if (!status.ok()) return status;
  }
  const auto& [x, y, z] = launch.blocks;
  const auto& [in_x, in_y, in_z] = launch.threads;
  if (launch.resident) {
    return Check(functions_->launch_together(launch.function, x, y, z, in_x, in_y, in_z,
                                             launch.shared, stream, launch.arguments),
                 "cuLaunchCooperativeKernel");
  }
  return Check(functions_->launch(launch.function, x, y, z, in_x, in_y, in_z, launch.shared, stream,
                                  launch.arguments, /*extra=*/nullptr),
               "cuLaunchKernel");
}

absl::StatusOr<void*> CudaDriver::Allocate(size_t bytes) const {
  Address address = 0;
  absl::Status status = Check(functions_->allocate(&address, bytes), "cuMemAlloc");
  if (!status.ok()) return status;
  return Pointer(address);
}

absl::Status CudaDriver::Free(void* memory) const {
  return Check(functions_->free(AddressOf(memory)), "cuMemFree");
}

absl::Status CudaDriver::CopyToDevice(void* to, const void* from, size_t bytes,
                                      void* stream) const {
  absl::Status status = Check(functions_->synchronize(stream), "cuStreamSynchronize");
  if (!status.ok()) return status;
  return Check(functions_->copy_to_device(AddressOf(to), from, bytes), "cuMemcpyHtoD");
}

absl::Status CudaDriver::CopyToHost(void* to, const void* from, size_t bytes, void* stream) const {
  absl::Status status = Check(functions_->synchronize(stream), "cuStreamSynchronize");
  if (!status.ok()) return status;
  return Check(functions_->copy_to_host(to, AddressOf(from), bytes), "cuMemcpyDtoH");
}

CudaScope::CudaScope(const CudaDriver& driver, void* context)
    : driver_(driver),
      status_(driver.Check(driver.functions_->push_context(context), "cuCtxPushCurrent")) {}

CudaScope::~CudaScope() {
  void* before = nullptr;
  if (status_.ok()) driver_.functions_->pop_context(&before);
}

}  // namespace composite
