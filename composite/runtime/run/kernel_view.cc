#include "composite/runtime/run/kernel_view.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "composite/runtime/instantiate/input_facts.h"
#include "composite/runtime/kernels/node_groups.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/run/kernel_call.h"

namespace composite {
namespace {

// A variable that is written to before it has paid for its packing, which takes as long as some
// calls save, is waited for so many times longer. After one that has, the next is waited for less
// again.
constexpr int64_t kPatience = 8;
constexpr int64_t kPays = 64;  // calls
constexpr int64_t kMostCalls = int64_t{1} << 40;
// Sets are given up that were not among the last calls, so many at least.
constexpr int64_t kForgotten = 256;

std::atomic<int> presuming_rest{0};

bool IsInHostMemory(tensorflow::OpKernelContext* context, int input) {
  return context->op_device_context() == nullptr ||
         context->input_memory_type(input) == tensorflow::HOST_MEMORY;
}

}  // namespace

void BeginToPresumeRest() { presuming_rest.fetch_add(1, std::memory_order_relaxed); }
void EndToPresumeRest() { presuming_rest.fetch_sub(1, std::memory_order_relaxed); }

AtRest::Answer AtRest::Note(tensorflow::OpKernelContext* context) {
  absl::MutexLock lock(mu_);
  if (++calls_ % kForgotten == 0 && Forget()) return kLeft;
  const auto stays = [&](int input) { return IsImmutableWhileHeld(context->input(input)); };
  if (!absl::c_all_of(inputs_, stays)) return kMoves;
  const auto is_here = [&](const Set& set) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!set.identities[i].Matches(context->input(inputs_[i]))) return false;
    }
    return true;
  };
  const auto hold = [&](Set* set) {
    for (int input : inputs_) set->held.emplace_back(context->input(input));
  };
  auto set = std::find_if(sets_.begin(), sets_.end(), is_here);
  if (set == sets_.end()) {
    const bool left = MakeRoom();
    Set& added = sets_.emplace_back();
    for (int input : inputs_) added.identities.emplace_back(context->input(input));
    added.last = calls_;
    // Not after a set that left too soon: whoever presumes it is wrong.
    if (left || needed_ > kLeastCalls || presuming_rest.load(std::memory_order_relaxed) == 0) {
      return left ? kLeft : kMoves;
    }
    added.calls = needed_;
    hold(&added);
    return kRests;
  }
  set->last = calls_;
  if (++set->calls == needed_ - 1) hold(&*set);
  return set->held.empty() || set->calls < needed_ ? kMoves : kRests;
}

void AtRest::Clear() {
  absl::MutexLock lock(mu_);
  sets_.clear();
}

bool AtRest::Forget() {
  const auto gone = std::partition(sets_.begin(), sets_.end(),
                                   [&](const Set& set) { return set.last > calls_ - kForgotten; });
  const bool rested =
      std::any_of(gone, sets_.end(), [](const Set& set) { return !set.held.empty(); });
  sets_.erase(gone, sets_.end());
  return rested;
}

bool AtRest::MakeRoom() {
  if (sets_.size() < most_) return false;
  const auto oldest = std::min_element(sets_.begin(), sets_.end(),
                                       [](const Set& a, const Set& b) { return a.last < b.last; });
  const bool rested = !oldest->held.empty();
  if (rested) {
    const bool has_paid = oldest->calls >= needed_ + kPays;
    needed_ = has_paid ? std::max(needed_ / kPatience, kLeastCalls)
                       : std::min(needed_ * kPatience, kMostCalls);
  }
  sets_.erase(oldest);
  return rested;
}

const KernelSnapshot& KernelView::snapshot(absl::FunctionRef<bool()> deterministic) {
  const KernelSnapshot& now = group_->snapshot();
  const KernelSnapshot* last = last_->load(std::memory_order_acquire);
  if (last == &now || (last != nullptr && deterministic())) return *last;
  return last_->compare_exchange_strong(last, &now) ? now : *last;
}

bool KernelView::Applies(tensorflow::OpKernelContext* context, bool deterministic) {
  if (needs_ != Needs::kRest) return true;
  idle_.Touch();
  // With deterministic ops the path is that of the first call, when nobody knows yet what rests.
  const AtRest::Answer answer = deterministic ? AtRest::kLeft : rest_.Note(context);
  if (answer == AtRest::kLeft) packed_.Clear();
  return answer == AtRest::kRests;
}

KernelViews ViewsOf(const OpVersion& version, tensorflow::AttrSlice attrs, const Device& device,
                    bool eager, bool counted, size_t sets) {
  KernelViews views;
  for (const NodeGroup& group : GroupsOf(version, attrs, device)) {
    views.push_back(std::make_unique<KernelView>(group.group, group.needs, VariableInputs(attrs),
                                                 eager, counted, sets));
  }
  return views;
}

const Signature* CallSnapshots::Call() {
  if (!call_.has_value()) {
    call_ = SignatureOf(context_);
    for (int i = 0; i < context_->num_inputs(); ++i) {
      if (IsInHostMemory(context_, i)) call_->NoteValue(i, context_->input(i));
    }
  }
  return &*call_;
}

bool CallSnapshots::Applies(size_t i) {
  KernelView& view = *views_[i];
  if (view.needs() != Needs::kRest) return true;
  const unsigned bit = 1u << i;
  if ((asked_ & bit) == 0 && view.Applies(context_, Deterministic())) applies_ |= bit;
  asked_ |= bit;
  return (applies_ & bit) != 0;
}

const KernelSnapshot* CallSnapshots::At(size_t i, bool must) {
  if ((left_ & 1u << i) != 0 || !Applies(i)) return nullptr;
  KernelView& view = *views_[i];
  const KernelSnapshot* const snapshot =
      must ? &view.group()->snapshot() : &view.snapshot([this] { return Deterministic(); });
  if (i == 0) first_ = snapshot;
  return snapshot;
}

bool CallSnapshots::Deterministic() {
  if (!deterministic_.has_value()) deterministic_ = DeterminismRequired();
  return *deterministic_;
}

}  // namespace composite
