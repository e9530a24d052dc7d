#include "composite/runtime/regions/region_options.h"

#include <cstdlib>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "composite/runtime/base/fork_mutex.h"
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

constexpr absl::string_view kMark = "composite_accelerated_";

struct OpList {
  bool is_set = false;
  absl::flat_hash_set<std::string> ops;
};

OpList FromEnvironment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == 0) return {};
  return {true, absl::StrSplit(value, absl::ByAnyChar(", "), absl::SkipEmpty())};
}

// -1: without end.
int Fuel() {
  const char* value = std::getenv("COMPOSITE_REGIONS_FUEL");
  int fuel = -1;
  if (value != nullptr && *value != 0 && (!absl::SimpleAtoi(value, &fuel) || fuel < 0)) {
    LOG(ERROR) << "Composite: COMPOSITE_REGIONS_FUEL=\"" << value
               << "\" is ignored; write a number of regions";
    return -1;
  }
  return fuel;
}

struct Burnt {
  ForkMutex mutex;
  absl::flat_hash_set<std::string> regions ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<RegionsOption> ParseRegions(absl::string_view value) {
  if (value.empty()) return RegionsOption::kUnset;
  if (value == "on") return RegionsOption::kOn;
  if (value == "off") return RegionsOption::kOff;
  return absl::InvalidArgumentError(
      absl::StrCat("regions \"", value, "\" is unknown; write one of \"on\", \"off\""));
}

RegionsOption& ThreadRegions() {
  thread_local RegionsOption option = RegionsOption::kUnset;
  return option;
}

absl::optional<RegionNames>& ThreadOnlyRegions() {
  thread_local absl::optional<RegionNames> names;
  return names;
}

bool RegionsAreOn() {
  static const bool by_default = [] {
    const char* value = std::getenv("COMPOSITE_REGIONS");
    return value != nullptr && absl::string_view(value) == "1";
  }();
  const RegionsOption chosen = ThreadRegions();
  return chosen == RegionsOption::kUnset ? by_default : chosen == RegionsOption::kOn;
}

bool IsAccelerated(absl::string_view function) {
  return ThreadRegions() != RegionsOption::kOff && absl::StrContains(function, kMark);
}

std::vector<std::string> DeniedOps(absl::string_view function) {
  std::vector<std::string> after = absl::StrSplit(function, absl::MaxSplits(kMark, 1));
  absl::string_view rest = after.back();
  if (after.size() < 2 || !absl::ConsumePrefix(&rest, "without.")) return {};
  return absl::StrSplit(rest.substr(0, rest.find("..")), '.');
}

bool IsAllowed(absl::string_view op) {
  static const auto& allowed = *new OpList(FromEnvironment("COMPOSITE_REGIONS_ALLOW"));
  static const auto& denied = *new OpList(FromEnvironment("COMPOSITE_REGIONS_DENY"));
  return (!allowed.is_set || allowed.ops.contains(op)) && !denied.ops.contains(op);
}

bool HasFuel(absl::string_view region) {
  static const int fuel = Fuel();
  if (fuel < 0) return true;
  static auto& burnt = *new Burnt();
  absl::MutexLock lock(&burnt.mutex);
  if (burnt.regions.contains(region)) return true;
  if (static_cast<int>(burnt.regions.size()) == fuel) return false;
  burnt.regions.emplace(region);
  LOG(INFO) << "Composite: region " << burnt.regions.size() << " of COMPOSITE_REGIONS_FUEL=" << fuel
            << " is " << region;
  return true;
}

}  // namespace composite
