#include "composite/runtime/run/kernel_view.h"

#include <algorithm>
#include <utility>

#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/program/node_attrs.h"
#include "tensorflow/core/util/determinism.h"

namespace composite {
namespace {

// A variable that is written to now and then is waited for longer each time.
constexpr int64_t kPatience = 8;
constexpr int64_t kMostCalls = int64_t{1} << 40;

std::vector<int> Positions(const tensorflow::AttrValue* inputs) {
  if (inputs == nullptr) return {};
  return {inputs->list().i().begin(), inputs->list().i().end()};
}

}  // namespace

bool AtRest::Note(tensorflow::OpKernelContext* context) {
  absl::MutexLock lock(&mu_);
  bool same = places_.size() == inputs_.size();
  places_.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const void* place = context->input(inputs_[i]).data();
    same = same && place == places_[i];
    places_[i] = place;
  }
  if (!same) {
    if (!held_.empty()) needed_ = std::min(needed_ * kPatience, kMostCalls);
    held_.clear();
    calls_ = 0;
    return false;
  }
  if (++calls_ == needed_ - 1) {
    for (int input : inputs_) held_.push_back(context->input(input));
  }
  return calls_ >= needed_;
}

const KernelSnapshot& KernelView::snapshot() {
  const KernelSnapshot& now = group_->snapshot();
  if (!tensorflow::OpDeterminismRequired()) return now;
  const KernelSnapshot* first = nullptr;
  return first_.compare_exchange_strong(first, &now) ? now : *first;
}

bool KernelView::Applies(tensorflow::OpKernelContext* context) {
  if (needs_ != kRest) return true;
  // With deterministic ops the path is that of the first call, when nobody knows yet what rests.
  if (!tensorflow::OpDeterminismRequired() && rest_.Note(context)) return true;
  packed_.Clear();
  return false;
}

std::vector<std::unique_ptr<KernelView>> ViewsOf(const OpVersion& version,
                                                 tensorflow::AttrSlice attrs, bool counted) {
  KernelTable& table = KernelTable::Global();
  const auto* constants = attrs.Find(kConstantsAttr);
  std::vector<int> variables = Positions(attrs.Find(kVariablesAttr));
  std::vector<std::unique_ptr<KernelView>> views;
  const auto add = [&](const tensorflow::AttrValue* known, KernelView::Needs needs) {
    views.push_back(std::make_unique<KernelView>(table.Group(version, attrs, known), needs,
                                                 variables, counted));
  };
  if (!variables.empty()) {
    std::vector<int> every = Positions(constants);
    // A variable that was frozen since is among both.
    every.insert(every.end(), variables.begin(), variables.end());
    std::sort(every.begin(), every.end());
    every.erase(std::unique(every.begin(), every.end()), every.end());
    tensorflow::AttrValue known;
    for (int input : every) known.mutable_list()->add_i(input);
    add(&known, KernelView::kRest);
  }
  if (constants != nullptr) add(constants, KernelView::kConstants);
  add(nullptr, KernelView::kNothing);
  return views;
}

}  // namespace composite
