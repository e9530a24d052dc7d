#include "composite/runtime/kernels/machine.h"

#include <cstdlib>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace composite {
namespace {

constexpr char kEnvironment[] = "COMPOSITE_ISA";
constexpr absl::string_view kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4",
                                         "x86-64-v4-bf16"};
constexpr int kUnknown = -1;
constexpr absl::string_view kCpuName = "CPU";
constexpr absl::string_view kCudaName = "cuda:sm_";

int LevelOf(absl::string_view isa) {
  int level = 0;
  for (absl::string_view known : kLevels) {
    if (known == isa) return level;
    ++level;
  }
  return kUnknown;
}

#if defined(__x86_64__)
// What a virtual machine may mask of x86-64-v3, and not every compiler has a name for.
bool HasSmallPartsOfV3() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  if ((ecx & bit_MOVBE) == 0 || (ecx & bit_F16C) == 0) return false;
  return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT) != 0;
}
#endif

int LevelOfCpu() {
#if defined(__x86_64__)
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  HasSmallPartsOfV3();
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const bool bfloat16 = v4 && __builtin_cpu_supports("avx512bf16");
  return bfloat16 ? 4 : v4 ? 3 : v3 ? 2 : v2 ? 1 : 0;
#else
  return kUnknown;
#endif
}

std::string ReadEnvironment() {
  const char* value = std::getenv(kEnvironment);
  return value != nullptr ? value : "";
}

absl::Status CheckIsa(const std::string& isa, const Device& cpu) {
  static const std::string* const chosen = new std::string(ReadEnvironment());
  const int needed = LevelOf(isa);
  if (needed == kUnknown || needed > cpu.level) {
    return absl::FailedPreconditionError(
        absl::StrCat("it was built for ", isa, ", which this CPU does not have"));
  }
  if (chosen->empty() || needed <= LevelOf(*chosen)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("it was built for ", isa, ", and ",
                                                    kEnvironment, "=", *chosen,
                                                    " in the environment excludes that"));
}

}  // namespace

const Device& HostCpu() {
  static const Device* const cpu = new Device{Device::kCpu, LevelOfCpu()};
  return *cpu;
}

std::string Device::name() const { return kind == kCuda ? absl::StrCat(kCudaName, level) : ""; }

absl::StatusOr<Device> DeviceOfRecord(absl::string_view name) {
  if (name.empty() || name == kCpuName) return HostCpu();
  absl::string_view level = name;
  Device device{Device::kCuda, 0};
  if (absl::ConsumePrefix(&level, kCudaName) && absl::SimpleAtoi(level, &device.level)) {
    return device;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("it was built for ", name, ", and kernels run on CPUs and on GPUs of NVIDIA's"));
}

absl::Status CheckMachine(const KernelRecord& record) {
  absl::StatusOr<Device> device = DeviceOfRecord(record.device);
  if (!device.ok()) return device.status();
  const bool is_checked = device->kind == Device::kCpu && !record.isa.empty();
  return is_checked ? CheckIsa(record.isa, *device) : absl::OkStatus();
}

}  // namespace composite
