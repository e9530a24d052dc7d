#include "composite/runtime/xla/kernel_choice.h"

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/decision_text.h"
#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/kernels/node_groups.h"
#include "composite/runtime/program/node_attrs.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

// Elements of inputs below which a call has too little to do for another function to pay.
constexpr int64_t kLeastElements = 1024;

// What the ops of an expansion are, all of its functions together.
struct Ops {
  bool only_maps = true;  // elementwise, or moving elements: XLA makes one loop of such ops
  bool has_loop = false;
  bool draws = false;
};

Ops OpsOf(const Expansion& expansion) {
  Ops ops;
  for (const std::string& name : expansion.library->ListFunctionNames()) {
    for (const tensorflow::NodeDef& node : expansion.library->Find(name)->node_def()) {
      const OpTraits& traits = TraitsOf(node.op());
      const bool is_call = expansion.library->Contains(node.op()) || traits.runs == Runs::kCall;
      const bool maps = traits.work == Work::kMaps || traits.work == Work::kMoves;
      ops.only_maps = ops.only_maps && (maps || is_call || node.op() == "Const");
      ops.has_loop = ops.has_loop || traits.runs == Runs::kLoop;
      ops.draws = ops.draws || traits.draws;
    }
  }
  return ops;
}

int64_t Elements(const Signature& call) {
  int64_t total = 0;
  auto dim = call.dims.begin();
  for (const int rank : call.ranks) {
    int64_t elements = 1;
    for (int i = 0; i < Signature::DimsOf(rank); ++i) elements *= *dim++;
    total += elements;
  }
  return total;
}

// Why no kernel is asked for, whatever its times would be; empty if one is.
std::string WhyLeftToXla(const XlaNode& node, const Ops& ops) {
  if (ops.only_maps) return "its ops are elementwise, which XLA fuses with those around them";
  // No pass has merged them, and XLA does where both are expansions.
  if (node.attrs.Find(kHasSavingForwardAttr) != nullptr ||
      node.attrs.Find(kSavingForwardAttr) != nullptr) {
    return "its gradient keeps values of it, which XLA computes together with its results";
  }
  if (!ops.has_loop && Elements(node.call) < kLeastElements) return "it is too small for a call";
  if (DeterminismRequired()) return "with deterministic ops no kernel is waited for";
  return "";
}

std::string Sentence(const Decision& decision, const XlaNode& node, const Caller& caller) {
  return composite::Sentence(decision, node.version, caller);
}

absl::Status Refusal(const XlaNode& node, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(
      node.version.op_name, " was called with backend=\"tvm\" in what XLA compiles: ", why,
      "; xla=\"never\" has XLA compile its expansion"));
}

}  // namespace

std::atomic<bool>& XlaKernelsAreForced() {
  static std::atomic<bool> forced{false};
  return forced;
}

namespace {

// A node on its way to a choice.
struct Pending {
  Pending(const XlaNode& node, const Options& asked)
      : node(node),
        forced(XlaKernelsAreForced() && asked.backend != Backend::kTf && !asked.strict()),
        options(asked),
        measuring(node.attrs.Find(kUncountedAttr) != nullptr),
        caller(CallerOf(node.version, NodeDtypes(node.version, node.attrs), measuring)),
        wait(asked.xla_wait == kXlaUnset ? kXlaDefault : asked.xla_wait) {
    if (forced) options.backend = Backend::kTvm;
    must = OptionsOf(caller, options).must();
  }

  // Why it is its expansion, whatever kernels there are; empty if that depends on them.
  std::string WhyNone() const {
    const Ops ops = OpsOf(node.expansion);
    if (wait == kXlaNever && !measuring) return "xla=\"never\"";
    if (ops.draws) return "it draws random numbers, which are others to XLA than to kernels";
    const bool any = must || options.invariant() || measuring || forced;
    return any ? "" : WhyLeftToXla(node, ops);
  }

  GroupSnapshots Snapshots() const {
    return {node.version, node.attrs, XlaCpu(), options.invariant(), node.call};
  }
  Decision Decide(GroupSnapshots* snapshots) const {
    return composite::Decide(*snapshots, caller, options, XlaCpu());
  }

  static bool IsAwaited(const Decision& decision) { return decision.route == Route::kCompile; }
  bool WaitsForVerdict(const Decision& decision) const {
    return wait > 0 && (decision.asks != 0 || decision.why == Why::kPending);
  }

  const XlaNode& node;
  const bool forced;
  Options options;
  const bool measuring;
  const Caller caller;
  const int32_t wait;
  bool must;
};

}  // namespace

absl::StatusOr<XlaChoice> ChooseForXla(const XlaNode& node, const Options& asked,
                                       const UntilWhen& until) {
  const Pending pending(node, asked);
  XlaChoice choice;
  choice.why = pending.WhyNone();
  if (!choice.why.empty()) return choice;
  GroupSnapshots snapshots = pending.Snapshots();
  Decision decision = pending.Decide(&snapshots);
  choice.group = snapshots.shared_group(0);
  absl::Status awaited;
  if (until != nullptr && Pending::IsAwaited(decision)) {
    until(absl::InfiniteDuration());
    awaited = KernelTable::Global().Await(choice.group.get(), node.call, [] { return false; });
    if (awaited.ok()) decision = pending.Decide(&snapshots);
  } else if (until != nullptr && pending.WaitsForVerdict(decision)) {
    const absl::Time end = until(absl::Milliseconds(pending.wait));
    KernelTable::Global().AwaitVerdict(choice.group.get(), node.call, end);
    decision = pending.Decide(&snapshots);
  }
  if (decision.why == Why::kNotExact) return CheckExact(decision.choice.kernel->record);
  choice.why =
      awaited.ok() ? Sentence(decision, node, pending.caller) : std::string(awaited.message());
  if (decision.route == Route::kKernel) {
    const InstalledKernel& kernel = *decision.choice.kernel;
    if (kernel.used != nullptr) kernel.used->Note();
    choice.kernel = &kernel;
  } else if (pending.must && until != nullptr && !pending.forced) {
    return Refusal(node, choice.why);
  }
  return choice;
}

void AskForXla(const XlaNode& node, const Options& asked) {
  const Pending pending(node, asked);
  if (!pending.WhyNone().empty()) return;
  GroupSnapshots snapshots = pending.Snapshots();
  const Decision decision = pending.Decide(&snapshots);
  const bool is_awaited = Pending::IsAwaited(decision);
  if (!is_awaited && !pending.WaitsForVerdict(decision)) return;
  KernelTable::Global().Ask(snapshots.shared_group(0).get(), node.call, is_awaited);
}

}  // namespace composite
