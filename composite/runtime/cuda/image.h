// The machine code of a kernel for GPUs, and its launches.
#ifndef COMPOSITE_RUNTIME_CUDA_IMAGE_H_
#define COMPOSITE_RUNTIME_CUDA_IMAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/cuda/driver.h"
#include "composite/runtime/cuda/launch_plan.h"

namespace composite {

// A cubin or PTX. Each context loads it when it first needs it, and keeps it for ever: work of a
// stream may still run what nobody holds any more. Thread-safe.
class CudaImage {
 public:
  // The functions of launches, in order.
  using Functions = std::vector<void*>;

  CudaImage(std::string bytes, std::vector<std::string> functions)
      : bytes_(std::move(bytes)), names_(std::move(functions)) {}

  const std::string& bytes() const { return bytes_; }

  // Needs the CudaScope of the context. What fails once may succeed later: memory may be short.
  absl::StatusOr<const Functions*> In(const CudaDriver& driver, void* context) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string bytes_;
  const std::vector<std::string> names_;
  mutable ForkMutex mu_;
  mutable std::map<void*, std::unique_ptr<const Functions>> loaded_ ABSL_GUARDED_BY(mu_);
};

// What the arguments of launches stand for. Addresses are the device's.
struct LaunchValues {
  absl::Span<void* const> inputs;
  absl::Span<void* const> outputs;
  absl::Span<void* const> workspaces;
  absl::Span<const int64_t> symbols;
};

// Gives all launches of a plan to a stream of the device, and waits for none of them. Needs the
// CudaScope of the device's context. The status names the function that was not launched.
absl::Status LaunchAll(const CudaDriver& driver, const CudaDevice& device, const LaunchPlan& plan,
                       const CudaImage& image, const LaunchValues& values, void* stream);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CUDA_IMAGE_H_
