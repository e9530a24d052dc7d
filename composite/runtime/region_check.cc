#include "composite/runtime/region_check.h"

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

class RegionChecker {
 public:
  explicit RegionChecker(const std::vector<ProgramRegion>& regions)
      : regions_(regions), state_(regions.size(), kNew) {}

  absl::Status Visit(int index, int depth) {
    // Each level is also one of evaluation's stack frames.
    constexpr int kMaxDepth = 200;
    const ProgramRegion& region = regions_[index];
    if (state_[index] == kOpen || depth > kMaxDepth) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Malformed program, function '", region.name, "': ",
          state_[index] == kOpen ? "it contains itself" : "it is nested too deeply (over 200)"));
    }
    if (state_[index] == kDone) return absl::OkStatus();
    state_[index] = kOpen;
    for (const ProgramNode& node : region.nodes) {
      for (int inner : node.regions) {
        TF_RETURN_IF_ERROR(CheckSignature(node, regions_[inner]));
        TF_RETURN_IF_ERROR(Visit(inner, depth + 1));
      }
    }
    state_[index] = kDone;
    return absl::OkStatus();
  }

 private:
  enum State { kNew, kOpen, kDone };

  static absl::Status CheckSignature(const ProgramNode& node, const ProgramRegion& region) {
    const int captures =
        static_cast<int>(node.inputs.size()) - (node.kind == NodeKind::kIf ? 1 : 0);
    if (region.parameters == captures && static_cast<int>(region.results.size()) == node.results) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Malformed program, region '", region.name, "' takes ", region.parameters,
                     " values and gives ", region.results.size(), ", but the node at ", node.place,
                     " has ", captures, " and expects ", node.results));
  }

  const std::vector<ProgramRegion>& regions_;
  std::vector<State> state_;
};

}  // namespace

absl::Status CheckRegions(const std::vector<ProgramRegion>& regions) {
  RegionChecker checker(regions);
  for (int i = 0; i < static_cast<int>(regions.size()); ++i) {
    TF_RETURN_IF_ERROR(checker.Visit(i, 0));
  }
  return absl::OkStatus();
}

}  // namespace composite
