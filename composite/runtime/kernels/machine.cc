#include "composite/runtime/kernels/machine.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "composite/runtime/base/cpu_level.h"

namespace composite {
namespace {

constexpr absl::string_view kCpuName = "CPU";
constexpr absl::string_view kXlaCpuName = "xla:cpu";
constexpr absl::string_view kCudaName = "cuda:sm_";
constexpr absl::string_view kPortableName = "cuda:compute_";

}  // namespace

const Device& HostCpu() {
  static const Device* const cpu = new Device{Device::kCpu, LevelOfCpu()};
  return *cpu;
}

const Device& XlaCpu() {
  static const Device* const cpu = new Device{Device::kXlaCpu, LevelOfCpu()};
  return *cpu;
}

std::string Device::name() const {
  if (kind == kXlaCpu) return std::string(kXlaCpuName);
  if (kind != kCuda) return "";
  return is_portable ? kAllPortable : absl::StrCat(kCudaName, level);
}

absl::StatusOr<Device> DeviceOfRecord(absl::string_view name) {
  if (name.empty() || name == kCpuName) return HostCpu();
  if (name == kXlaCpuName) return XlaCpu();
  absl::string_view level = name;
  Device device{Device::kCuda, 0};
  device.is_portable = absl::ConsumePrefix(&level, kPortableName);
  if ((device.is_portable || absl::ConsumePrefix(&level, kCudaName)) &&
      absl::SimpleAtoi(level, &device.level)) {
    return device;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("it was built for ", name, ", and kernels run on CPUs and on GPUs of NVIDIA's"));
}

absl::Status CheckMachine(const KernelRecord& record) {
  absl::StatusOr<Device> device = DeviceOfRecord(record.device);
  if (!device.ok()) return device.status();
  if (device->kind == Device::kCuda || record.isa.empty()) return absl::OkStatus();
  const std::string why = ExcludedLevel(record.isa, device->level);
  return why.empty() ? absl::OkStatus() : absl::FailedPreconditionError(why);
}

}  // namespace composite
