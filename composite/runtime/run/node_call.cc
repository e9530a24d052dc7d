#include "composite/runtime/run/node_call.h"

#include "composite/runtime/kernels/kernel_table.h"

namespace composite {

void AskedKernels::Enqueue() const {
  for (size_t i = 0; groups_ >> i != 0; ++i) {
    if ((groups_ >> i & 1) == 0) continue;
    KernelTable::Global().Enqueue(binding_->views[i]->group(), call_);
  }
}

absl::Status NodeCall::Settle(const Decision& decision) {
  if (decision.route == Route::kRefuse) {
    return node_.Refusal(*binding_.version, decision, awaited_);
  }
  awaited_ = Await(decision);
  if (absl::IsFailedPrecondition(awaited_)) {
    snapshots_.LeaveUpTo(decision.group);
    return absl::OkStatus();
  }
  return awaited_;
}

// FailedPrecondition when none will come.
absl::Status NodeCall::Await(const Decision& decision) {
  Enqueue(decision);
  tensorflow::CancellationManager* cancellation = context_->cancellation_manager();
  return KernelTable::Global().Await(ViewOf(decision).group(), *snapshots_.Call(), [cancellation] {
    return cancellation != nullptr && cancellation->IsCancelled();
  });
}

}  // namespace composite
