#include "composite/runtime/run/node_call.h"

#include "composite/runtime/kernels/decision_text.h"
#include "composite/runtime/kernels/kernel_table.h"

namespace composite {

void AskedKernels::Enqueue() const {
  for (size_t i = 0; groups_ >> i != 0; ++i) {
    if ((groups_ >> i & 1) == 0) continue;
    KernelTable::Global().Enqueue(binding_->views[i]->group(), call_);
  }
}

void NodeCall::Note(const Decision& decision, Route ran) {
  const Choice& choice = decision.choice;
  if (choice.kernel != nullptr || choice.slower != nullptr) {
    const InstalledKernel& kernel = choice.kernel != nullptr ? *choice.kernel : *choice.slower;
    if (kernel.used != nullptr) kernel.used->Note();
  } else if (decision.shape_class != nullptr) {
    decision.shape_class->used->Note();
  }
  if (binding_.counts == nullptr) return;
  if (ran == Route::kKernel) return binding_.counts->NoteKernel(choice);
  binding_.counts->NoteExpansion(decision.why, [&]() -> std::string {
    if (decision.route == Route::kKernel) return "the kernel of the call could not be used";
    return Sentence(decision, *binding_.version, node_.CallerAs(*binding_.version));
  });
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
