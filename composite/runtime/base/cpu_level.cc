#include "composite/runtime/base/cpu_level.h"

#include <cstdlib>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace composite {
namespace {

constexpr char kEnvironment[] = "COMPOSITE_ISA";
#if defined(__aarch64__)
constexpr const char* kLevels[] = {"aarch64"};
#else
constexpr const char* kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4",
                                   "x86-64-v4-bf16"};
#endif
constexpr int kUnknown = -1;

#if defined(__x86_64__)
// What a virtual machine may mask of x86-64-v3, and not every compiler has a name for.
bool HasSmallPartsOfV3() {
  unsigned eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  if ((ecx & bit_MOVBE) == 0 || (ecx & bit_F16C) == 0) return false;
  return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT) != 0;
}
#endif

std::string ReadEnvironment() {
  const char* value = std::getenv(kEnvironment);
  return value != nullptr ? value : "";
}

}  // namespace

int LevelOfCpu() {
#if defined(__x86_64__)
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  HasSmallPartsOfV3();
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const bool bfloat16 =
      v4 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
  return bfloat16 ? 4 : v4 ? 3 : v3 ? 2 : v2 ? 1 : 0;
#elif defined(__aarch64__)
  return 0;
#else
  return kUnknown;
#endif
}

int LevelOf(const std::string& isa) {
  int level = 0;
  for (const char* known : kLevels) {
    if (isa == known) return level;
    ++level;
  }
  return kUnknown;
}

std::string ExcludedLevel(const std::string& isa, int level) {
  static const std::string* const chosen = new std::string(ReadEnvironment());
  const int needed = LevelOf(isa);
  if (needed == kUnknown || needed > level) {
    return "it was built for " + isa + ", which this CPU does not have";
  }
  if (chosen->empty() || needed <= LevelOf(*chosen)) return "";
  return "it was built for " + isa + ", and " + kEnvironment + "=" + *chosen +
         " in the environment excludes that";
}

}  // namespace composite
