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

absl::StatusOr<XlaChoice> ChooseForXla(const XlaNode& node, const Options& asked, bool waits) {
  const bool forced = XlaKernelsAreForced() && asked.backend != Backend::kTf && !asked.strict();
  Options options = asked;
  if (forced) options.backend = Backend::kTvm;
  XlaChoice choice;
  const bool measuring = node.attrs.Find(kUncountedAttr) != nullptr;
  const Caller caller = CallerOf(node.version, NodeDtypes(node.version, node.attrs), measuring);
  const int32_t wait = options.xla_wait == kXlaUnset ? kXlaDefault : options.xla_wait;
  const bool must = OptionsOf(caller, options).must();
  const Ops ops = OpsOf(node.expansion);
  if (wait == kXlaNever && !measuring) {
    choice.why = "xla=\"never\"";
  } else if (ops.draws) {
    choice.why = "it draws random numbers, which are others to XLA than to kernels";
  } else if (!must && !options.invariant() && !measuring && !forced) {
    choice.why = WhyLeftToXla(node, ops);
  }
  if (!choice.why.empty()) return choice;
  GroupSnapshots snapshots(node.version, node.attrs, XlaCpu(), options.invariant(), node.call);
  Decision decision = Decide(snapshots, caller, options, XlaCpu());
  choice.group = snapshots.shared_group(0);
  absl::Status awaited;
  if (waits && decision.route == Route::kCompile) {
    awaited = KernelTable::Global().Await(choice.group.get(), node.call, [] { return false; });
    if (awaited.ok()) decision = Decide(snapshots, caller, options, XlaCpu());
  } else if (waits && wait > 0 && (decision.asks != 0 || decision.why == Why::kPending)) {
    KernelTable::Global().AwaitVerdict(choice.group.get(), node.call, absl::Milliseconds(wait));
    decision = Decide(snapshots, caller, options, XlaCpu());
  }
  if (decision.why == Why::kNotExact) return CheckExact(decision.choice.kernel->record);
  choice.why = awaited.ok() ? Sentence(decision, node, caller) : std::string(awaited.message());
  if (decision.route == Route::kKernel) {
    const InstalledKernel& kernel = *decision.choice.kernel;
    if (kernel.used != nullptr) kernel.used->Note();
    choice.kernel = &kernel;
  } else if (must && waits && !forced) {
    return Refusal(node, choice.why);
  }
  return choice;
}

}  // namespace composite
