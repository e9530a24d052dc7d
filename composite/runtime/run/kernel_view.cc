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

// Packing takes as long as kPays calls save. N grows by this factor when a stable set is replaced
// sooner, and shrinks by it otherwise.
constexpr int64_t kPatience = 8;
constexpr int64_t kPays = 64;  // calls
constexpr int64_t kMostCalls = int64_t{1} << 40;
// A set is given up when none of so many calls used it.
constexpr int64_t kForgotten = 256;

std::atomic<int> presuming_stable{0};

bool IsInHostMemory(tensorflow::OpKernelContext* context, int input) {
  return context->op_device_context() == nullptr ||
         context->input_memory_type(input) == tensorflow::HOST_MEMORY;
}

}  // namespace

void BeginToPresumeStable() { presuming_stable.fetch_add(1, std::memory_order_relaxed); }
void EndToPresumeStable() { presuming_stable.fetch_sub(1, std::memory_order_relaxed); }

StableInputs::Answer StableInputs::Note(tensorflow::OpKernelContext* context) {
  absl::MutexLock lock(mu_);
  if (++calls_ % kForgotten == 0 && Forget()) return kReleased;
  const auto stays = [&](int input) { return IsImmutableWhileHeld(context->input(input)); };
  if (!absl::c_all_of(inputs_, stays)) return kChanging;
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
    const bool released = MakeRoom();
    Set& added = sets_.emplace_back();
    for (int input : inputs_) added.identities.emplace_back(context->input(input));
    added.last = calls_;
    // Not after a set was replaced too soon: the presumption was wrong.
    if (released || needed_ > kLeastCalls ||
        presuming_stable.load(std::memory_order_relaxed) == 0) {
      return released ? kReleased : kChanging;
    }
    added.calls = needed_;
    hold(&added);
    return kStable;
  }
  set->last = calls_;
  if (++set->calls == needed_ - 1) hold(&*set);
  return set->held.empty() || set->calls < needed_ ? kChanging : kStable;
}

void StableInputs::Clear() {
  absl::MutexLock lock(mu_);
  sets_.clear();
}

bool StableInputs::Forget() {
  const auto gone = std::partition(sets_.begin(), sets_.end(),
                                   [&](const Set& set) { return set.last > calls_ - kForgotten; });
  const bool was_stable =
      std::any_of(gone, sets_.end(), [](const Set& set) { return !set.held.empty(); });
  sets_.erase(gone, sets_.end());
  return was_stable;
}

bool StableInputs::MakeRoom() {
  if (sets_.size() < most_) return false;
  const auto oldest = std::min_element(sets_.begin(), sets_.end(),
                                       [](const Set& a, const Set& b) { return a.last < b.last; });
  const bool was_stable = !oldest->held.empty();
  if (was_stable) {
    const bool has_paid = oldest->calls >= needed_ + kPays;
    needed_ = has_paid ? std::max(needed_ / kPatience, kLeastCalls)
                       : std::min(needed_ * kPatience, kMostCalls);
  }
  sets_.erase(oldest);
  return was_stable;
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
  // With deterministic ops the path is that of the first call, when it is not known which inputs
  // are stable.
  const StableInputs::Answer answer =
      deterministic ? StableInputs::kReleased : stable_.Note(context);
  if (answer == StableInputs::kReleased) packed_.Clear();
  return answer == StableInputs::kStable;
}

KernelViews ViewsOf(const OpVersion& version, tensorflow::AttrSlice attrs, const Device& device,
                    bool invariant, bool eager, bool counted, size_t sets) {
  KernelViews views;
  for (const NodeGroup& group : GroupsOf(version, attrs, device, invariant)) {
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
