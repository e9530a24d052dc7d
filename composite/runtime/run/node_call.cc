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

const KernelGroup* NodeCall::GroupToAsk(const Decision& decision) const {
  for (size_t i = 0; decision.asks >> i != 0; ++i) {
    if ((decision.asks >> i & 1) != 0) return binding_.views[i]->group();
  }
  return nullptr;
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
  const KernelGroup* group = GroupToAsk(decision);
  const bool asks = group != nullptr && group->calls_to_come() <= 1;
  binding_.counts->NoteExpansion(decision.why, asks, [&]() -> std::string {
    if (decision.route == Route::kKernel) return "the kernel of the call could not be used";
    if (decision.why == Why::kFirstCall && group != nullptr) {
      const std::string later = KernelTable::Global().WhyLater(*binding_.version, *group);
      return later.empty() ? "no kernel covered the call, which has asked for one" : later;
    }
    return Sentence(decision, *binding_.version, node_.CallerAs(*binding_.version));
  });
}

std::string NodeCall::WhyNone(const Decision& decision, const OpVersion& version) const {
  if (!awaited_.ok()) return std::string(awaited_.message());
  return Sentence(decision, version, node_.CallerAs(version));
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
