#include "composite/runtime/regions/region_options.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace composite {

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

bool RegionsAreOn() {
  static const bool by_default = [] {
    const char* value = std::getenv("COMPOSITE_REGIONS");
    return value != nullptr && absl::string_view(value) == "1";
  }();
  const RegionsOption chosen = ThreadRegions();
  return chosen == RegionsOption::kUnset ? by_default : chosen == RegionsOption::kOn;
}

bool IsAccelerated(absl::string_view function) {
  return ThreadRegions() != RegionsOption::kOff &&
         absl::StrContains(function, "composite_accelerated_");
}

}  // namespace composite
