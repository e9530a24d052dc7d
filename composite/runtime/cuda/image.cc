#include "composite/runtime/cuda/image.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace composite {
namespace {

// Where the driver reads an argument; it does not write there.
void* PlaceOf(const LaunchArgument& argument, const LaunchValues& values) {
  const void* place = nullptr;
  switch (argument.kind) {
    case LaunchArgument::kInput:
      place = &values.inputs[argument.index];
      break;
    case LaunchArgument::kOutput:
      place = &values.outputs[argument.index];
      break;
    case LaunchArgument::kWorkspace:
      place = &values.workspaces[argument.index];
      break;
    case LaunchArgument::kSize:
      place = &values.symbols[argument.index];
      break;
    case LaunchArgument::kNumber:
      place = &argument.bits;
      break;
  }
  return const_cast<void*>(place);
}

absl::Status Named(const absl::Status& status, absl::string_view what) {
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

}  // namespace

absl::StatusOr<const CudaImage::Functions*> CudaImage::In(const CudaDriver& driver,
                                                          void* context) const {
  absl::MutexLock lock(mu_);
  std::unique_ptr<const Functions>& known = loaded_[context];
  if (known != nullptr) return known.get();
  absl::StatusOr<void*> module = driver.Load(bytes_);
  if (!module.ok()) return module.status();
  auto functions = std::make_unique<Functions>();
  for (const std::string& name : names_) {
    absl::StatusOr<void*> function = driver.Find(*module, name);
    if (!function.ok()) return Named(function.status(), name);
    functions->push_back(*function);
  }
  known = std::move(functions);
  return known.get();
}

absl::Status LaunchAll(const CudaDriver& driver, const CudaDevice& device, const LaunchPlan& plan,
                       const CudaImage& image, const LaunchValues& values, void* stream) {
  auto functions = image.In(driver, device.context);
  if (!functions.ok()) return functions.status();
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const KernelLaunch& launch = plan.launches[i];
    auto blocks = launch.Blocks(values.symbols, device.multiprocessors);
    if (!blocks.ok()) return Named(blocks.status(), launch.function);
    if (std::count(blocks->begin(), blocks->end(), 0u) != 0) continue;
    absl::InlinedVector<void*, 8> places;
    for (const LaunchArgument& argument : launch.arguments) {
      places.push_back(PlaceOf(argument, values));
    }
    const CudaLaunch call{(**functions)[i], *blocks,
                          launch.block,     static_cast<unsigned>(launch.dynamic),
                          places.data(),    launch.resident};
    absl::Status status = driver.Launch(call, stream);
    if (!status.ok()) return Named(status, launch.function);
  }
  return absl::OkStatus();
}

}  // namespace composite
