#include "composite/runtime/run/resting_inputs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "composite/runtime/kernels/packing.h"

namespace composite {
namespace {

// The first input of numbers, which may be too few to be packed; negative if there is none.
int DataInput(tensorflow::OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const tensorflow::Tensor& input = context->input(i);
    if (MayBePacked(input.dtype()) && input.dims() > 0) return i;
  }
  return -1;
}

}  // namespace

absl::optional<Resting> RestingInputs::Note(tensorflow::OpKernelContext* context) {
  std::vector<Input> dropped;  // without the lock
  absl::MutexLock lock(mu_);
  if (!begun_) Begin(context);
  ++calls_;
  for (auto input = few_.begin(); input != few_.end();) {
    if (Stays(*input, context->input(input->index))) {
      ++input;
    } else {
      dropped.push_back(std::move(*input));
      input = few_.erase(input);
    }
  }
  if (calls_ < next_) return absl::nullopt;
  // What changed at the end of this time alone may be at rest since: that is seen soon.
  next_ *= few_.size() < worth_ ? 2 : kGrowth;
  begun_ = false;
  // Where nothing changes, as where a call is timed, the first input is what is computed on.
  const bool nothing_changed = few_.size() == worth_ && !few_.empty();
  const size_t first = nothing_changed && few_[0].index == DataInput(context) ? 1 : 0;
  Resting found;
  for (size_t i = first; i < few_.size(); ++i) {
    found.inputs.push_back(few_[i].index);
    found.sets = std::max(found.sets, few_[i].identities.size());
  }
  std::move(few_.begin(), few_.end(), std::back_inserter(dropped));
  few_.clear();
  if (found == told_) return absl::nullopt;
  return told_ = std::move(found);
}

bool RestingInputs::LooksAt(int input) const {
  return inputs_.empty() || std::binary_search(inputs_.begin(), inputs_.end(), input);
}

void RestingInputs::Begin(tensorflow::OpKernelContext* context) {
  begun_ = true;
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (LooksAt(i) && IsWorthPacking(context->input(i))) few_.push_back({i, {}, {}});
  }
  worth_ = few_.size();
}

bool RestingInputs::Stays(Input& input, const tensorflow::Tensor& now) {
  if (!IsImmutableWhileHeld(now)) return false;
  const auto matches = [&](const TensorIdentity& identity) { return identity.Matches(now); };
  const bool holds = calls_ + static_cast<int64_t>(few()) + 2 > next_;
  if (std::none_of(input.identities.begin(), input.identities.end(), matches)) {
    input.identities.emplace_back(now);
    return !holds && input.identities.size() <= few();
  }
  if (!holds) return true;
  idle_.Touch();
  const auto is_same = [&](const HeldTensor& held) { return held.Matches(now); };
  if (std::none_of(input.held.begin(), input.held.end(), is_same)) input.held.emplace_back(now);
  return true;
}

void RestingInputs::Release() {
  std::vector<Input> dropped;  // without the lock
  absl::MutexLock lock(mu_);
  std::swap(dropped, few_);
  begun_ = false;
}

size_t RestingInputs::few() const {
  // A quarter of the first calls; all later times are long enough.
  return next_ == kFirst ? kFirst / 4 : kMostSets;
}

}  // namespace composite
