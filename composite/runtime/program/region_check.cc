#include "composite/runtime/program/region_check.h"

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
      for (size_t i = 0; i < node.regions.size(); ++i) {
        const int inner = node.regions[i];
        TF_RETURN_IF_ERROR(CheckSignature(node, static_cast<int>(i), regions_[inner]));
        TF_RETURN_IF_ERROR(Visit(inner, depth + 1));
      }
    }
    state_[index] = kDone;
    return absl::OkStatus();
  }

 private:
  enum State { kNew, kOpen, kDone };

  static absl::Status CheckSignature(const ProgramNode& node, int inner,
                                     const ProgramRegion& region) {
    const int inputs = static_cast<int>(node.inputs.size());
    const int given = inputs - (node.kind == NodeKind::kIf ? 1 : 0);
    const bool is_while = node.kind == NodeKind::kWhile;
    const int wanted = is_while && inner == 0 ? 1 : node.results;
    // A loop hands its results to itself: they replace as many of its inputs.
    if (region.parameters == given && static_cast<int>(region.results.size()) == wanted &&
        (!is_while || node.results <= inputs)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Malformed program, region '", region.name, "' takes ", region.parameters,
                     " values and gives ", region.results.size(), ", but the node at ", node.place,
                     " has ", given, " and expects ", wanted));
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
