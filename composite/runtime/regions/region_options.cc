#include "composite/runtime/regions/region_options.h"

#include <algorithm>
#include <atomic>
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
#include "composite/runtime/regions/selection.h"
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

constexpr absl::string_view kMark = "composite_accelerated_";

Selection FromEnvironment(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return {};
  return Selection(absl::StrSplit(value, absl::ByAnyChar(", "), absl::SkipEmpty()));
}

const Selection& Allowed() {
  static const auto& allowed = *new Selection(FromEnvironment("COMPOSITE_REGIONS_ALLOW"));
  return allowed;
}

const Selection& Denied() {
  static const auto& denied = *new Selection(FromEnvironment("COMPOSITE_REGIONS_DENY"));
  return denied;
}

// The number, 0 or more, that a variable holds; `otherwise` if it holds none.
int NumberOr(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == 0) return otherwise;
  int number = 0;
  if (absl::SimpleAtoi(value, &number) && number >= 0) return number;
  LOG(ERROR) << "Composite: " << variable << "=\"" << value << "\" is ignored; write a number";
  return otherwise;
}

std::atomic<bool> regions_are_compiled{false};
std::atomic<bool> has_kernels_of_regions{false};

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

bool RegionsCanHaveKernels() {
  return regions_are_compiled.load(std::memory_order_acquire) ||
         has_kernels_of_regions.load(std::memory_order_acquire);
}

void SetRegionsAreCompiled(bool are_compiled) {
  regions_are_compiled.store(are_compiled, std::memory_order_release);
}

void NoteKernelsOfRegions() { has_kernels_of_regions.store(true, std::memory_order_release); }

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

std::vector<std::string> DeniedIn(absl::string_view function) {
  std::vector<std::string> after = absl::StrSplit(function, absl::MaxSplits(kMark, 1));
  absl::string_view rest = after.back();
  if (after.size() < 2 || !absl::ConsumePrefix(&rest, "without.")) return {};
  std::vector<std::string> denied = absl::StrSplit(rest.substr(0, rest.find("..")), '.');
  for (std::string& entry : denied) entry = Unescaped(entry);
  return denied;
}

bool IsAllowed(const tensorflow::Node& node) {
  return (!Allowed().of_nodes() || Allowed().HasNode(node)) && !Denied().HasNode(node);
}

bool IsAllowedRegion(absl::string_view region) {
  return (!Allowed().of_regions() || Allowed().HasRegion(region)) && !Denied().HasRegion(region);
}

int LeastOps() {
  static const int least =
      std::max(NumberOr("COMPOSITE_REGIONS_MIN_OPS", 0), Denied().smaller_than());
  return least;
}

bool HasFuel(absl::string_view region) {
  static const int fuel = NumberOr("COMPOSITE_REGIONS_FUEL", -1);  // -1: without end
  if (fuel < 0) return true;
  static auto& burnt = *new Burnt();
  absl::MutexLock lock(burnt.mutex);
  if (burnt.regions.contains(region)) return true;
  if (static_cast<int>(burnt.regions.size()) == fuel) return false;
  burnt.regions.emplace(region);
  LOG(INFO) << "Composite: region " << burnt.regions.size() << " of COMPOSITE_REGIONS_FUEL=" << fuel
            << " is " << region;
  return true;
}

}  // namespace composite
