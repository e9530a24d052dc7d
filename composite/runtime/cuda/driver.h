// NVIDIA's driver, opened by its name when the first node on a GPU asks for it: what this library
// needs of it, as statuses. Nothing is linked with CUDA.
#ifndef COMPOSITE_RUNTIME_CUDA_DRIVER_H_
#define COMPOSITE_RUNTIME_CUDA_DRIVER_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace composite {

// A GPU, by the context in which TensorFlow, or whoever else, uses it.
struct CudaDevice {
  void* context = nullptr;
  int number = 0;  // as CUDA counts those that this process sees
  int level = 0;   // ten times the major number of its compute capability, and the minor one
  int multiprocessors = 0;
};

// What is launched: blocks and their threads, in three dimensions.
struct CudaLaunch {
  void* function;
  std::array<unsigned, 3> blocks;
  std::array<unsigned, 3> threads;
  unsigned shared;   // bytes beside those that the function declares
  void** arguments;  // their addresses
  bool resident;     // its blocks wait for each other: all of them run at a time, or none does
};

// Thread-safe. Handles of streams, contexts, modules and functions are the driver's.
class CudaDriver {
 public:
  // libcuda.so.1, or the library that COMPOSITE_CUDA_DRIVER names. FailedPrecondition, the same for
  // good, when there is none or it finds no GPU.
  static const absl::StatusOr<const CudaDriver*>& Get();

  // Whether the environment names it. Only then are streams of devices that are plugins of
  // TensorFlow streams of this driver.
  bool is_named() const { return is_named_; }

  absl::StatusOr<CudaDevice> DeviceOfStream(void* stream) const;
  // GPU number `ordinal` in a context of its process, which stays. NotFound: there are fewer.
  absl::StatusOr<CudaDevice> DeviceAt(int ordinal) const;

  // These need a CudaScope.
  absl::StatusOr<void*> Load(const std::string& image) const;
  absl::StatusOr<void*> Find(void* module, const std::string& function) const;
  absl::Status Launch(const CudaLaunch& launch, void* stream) const;
  absl::StatusOr<void*> Allocate(size_t bytes) const;
  absl::Status Free(void* memory) const;
  // Return when the copy is done, and what the stream was given before.
  absl::Status CopyToDevice(void* to, const void* from, size_t bytes, void* stream) const;
  absl::Status CopyToHost(void* to, const void* from, size_t bytes, void* stream) const;

 private:
  friend class CudaScope;
  struct Functions;

  CudaDriver(const Functions* functions, bool is_named)
      : functions_(functions), is_named_(is_named) {}
  static absl::StatusOr<const CudaDriver*> Open();

  absl::Status Check(int result, const char* function) const;
  absl::StatusOr<CudaDevice> Describe(void* context, int device) const;

  const Functions* const functions_;
  const bool is_named_;
};

// Makes a context that of the calling thread, as long as this object lives.
class CudaScope {
 public:
  CudaScope(const CudaDriver& driver, void* context);
  ~CudaScope();
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  const CudaDriver& driver_;
  absl::Status status_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CUDA_DRIVER_H_
