#include "composite/runtime/kernels/machine.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/cpu_level.h"

namespace composite {
namespace {

constexpr absl::string_view kCpuType = "CPU";

}  // namespace

const Device& HostCpu() {
  static const Device* const cpu = new Device{Device::kCpu, LevelOfCpu()};
  return *cpu;
}

Device DeviceOfType(absl::string_view type) {
  return type.empty() || type == kCpuType ? HostCpu() : Device{Device::kOther, 0};
}

absl::Status CheckMachine(const KernelRecord& record, const Device& device) {
  if (DeviceOfType(record.device).kind != device.kind) {
    return absl::FailedPreconditionError(
        absl::StrCat("it was built for ", record.device, ", and kernels run on the CPU so far"));
  }
  const std::string why = record.isa.empty() ? "" : ExcludedLevel(record.isa, device.level);
  return why.empty() ? absl::OkStatus() : absl::FailedPreconditionError(why);
}

}  // namespace composite
