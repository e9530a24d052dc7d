#include "composite/runtime/run/node_call.h"

#include "composite/runtime/kernels/kernel_table.h"

namespace composite {

void AskedKernels::Enqueue() const {
  for (size_t i = 0; groups_ >> i != 0; ++i) {
    if ((groups_ >> i & 1) == 0) continue;
    KernelTable::Global().Enqueue(binding_->views[i]->group(), call_);
  }
}

absl::StatusOr<Decision> NodeCall::Next() {
  for (;;) {
    const Caller caller = node_.CallerAs(*binding_.version);
    Decision decision = Decide(snapshots_, caller, options_, node_.device());
    if (decision.route == Route::kRefuse) {
      return node_.Refusal(*binding_.version, decision, awaited_);
    }
    if (decision.route != Route::kCompile) return decision;
    awaited_ = Await(decision);
    if (awaited_.ok()) continue;
    if (!absl::IsFailedPrecondition(awaited_)) return awaited_;
    snapshots_.LeaveUpTo(decision.group);
  }
}

// FailedPrecondition when none will come.
absl::Status NodeCall::Await(const Decision& decision) {
  Asked(decision).Enqueue();
  tensorflow::CancellationManager* cancellation = context_->cancellation_manager();
  return KernelTable::Global().Await(ViewOf(decision).group(), *snapshots_.Call(), [cancellation] {
    return cancellation != nullptr && cancellation->IsCancelled();
  });
}

}  // namespace composite
