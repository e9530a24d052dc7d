#include "composite/runtime/kernels/decide.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"

namespace composite {
namespace {

// Whether requests of such a node can be served at all, now or once the worker runs.
bool CanCompile(const Caller& caller) {
  return caller.compiler.lowers && caller.compiler.allowed &&
         caller.dtypes.IsIn(caller.compiler.dtypes);
}

// Whether kernels that a library brought unchecked are checked in this process.
bool CanCheck(const Caller& caller) {
  return caller.compiler.allowed && caller.compiler.running && !caller.measuring;
}

absl::optional<Why> WhyNoKernelMayRun(const Caller& caller, const Options& options,
                                      const Device& device) {
  if (options.backend == Backend::kTf) return Why::kBackendTf;
  if (options.expansion_only()) return Why::kStrict;
  if (!device.has_kernels()) return Why::kDevice;
  if (!caller.dtypes.IsIn(AbiDtypes())) return Why::kDtypes;
  return absl::nullopt;
}

Why WhyOf(const ShapeClass& shape_class) {
  switch (shape_class.state) {
    case ShapeClass::kPending:
      return Why::kPending;
    case ShapeClass::kKernel:
      return Why::kNotInstalled;
    case ShapeClass::kExpansion:
      return Why::kNotFaster;
    case ShapeClass::kNotCovered:
      return Why::kNotCovered;
    case ShapeClass::kFailed:
      break;
  }
  return Why::kFailed;
}

// Why a group has no kernel for a call that none was measured slower for.
Why WhyNone(const Caller& caller, const KernelSnapshot& snapshot, const Choice& choice,
            const Signature& call) {
  if (choice.shape_class != nullptr) return WhyOf(*choice.shape_class);
  if (choice.unchecked != nullptr) return CanCheck(caller) ? Why::kFirstCall : Why::kUnchecked;
  if (!caller.compiler.lowers) return Why::kNoLowering;
  if (!caller.dtypes.IsIn(caller.compiler.dtypes)) return Why::kNotCompiledDtypes;
  if (!caller.compiler.allowed) return Why::kJitOff;
  if (!caller.compiler.running) return Why::kNoWorker;
  if (call.has_empty_input()) return Why::kEmptyInput;
  return snapshot.HasSizes(call) ? Why::kFirstCall : Why::kUnknownSize;
}

bool IsPending(const Choice& choice) {
  return choice.shape_class != nullptr && choice.shape_class->state == ShapeClass::kPending;
}

// Whether it is no use to wait for kernels of this choice's group.
bool NoneWillCome(const Choice& choice) {
  return choice.shape_class != nullptr && !IsPending(choice);
}

// The reason of a group without a kernel, unless one before it is still open: what that is waiting
// for tells more than what was settled elsewhere.
void SetReason(Why why, const ShapeClass* shape_class, Decision* decision) {
  if (decision->why == Why::kPending || decision->why == Why::kFirstCall) return;
  decision->why = why;
  decision->shape_class = shape_class;
}

// The decision that a kernel makes.
void SetKernel(Why why, size_t group, Choice&& choice, Decision* decision) {
  decision->route = why == Why::kKernel ? Route::kKernel : Route::kRefuse;
  decision->why = why;
  decision->is_final = false;
  decision->group = group;
  decision->choice = std::move(choice);
}

void DecideWithoutShapes(Snapshots& snapshots, const Caller& caller, const Options& options,
                         Decision* result) {
  Decision& decision = *result;
  decision.why = Why::kUnknownShapes;
  if (options.must()) {
    decision.route = Route::kCompile;
    return;
  }
  decision.is_final = !CanCompile(caller);
  const auto may_run = [&](const InstalledKernel* kernel) {
    return kernel->record.verdict == Verdict::kKernel ||
           (kernel->unchecked != nullptr && CanCheck(caller));
  };
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const KernelSnapshot* snapshot = snapshots.At(i, /*must=*/false);
    if (snapshot != nullptr &&
        std::any_of(snapshot->kernels.begin(), snapshot->kernels.end(), may_run)) {
      decision.is_final = false;
    }
  }
}

void DecideAuto(Snapshots& snapshots, const Caller& caller, const Signature& call,
                Decision* result) {
  Decision& decision = *result;
  decision.is_final = true;
  const bool may_come = CanCompile(caller);
  bool may_ask = may_come && caller.compiler.running;
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const KernelSnapshot* snapshot = snapshots.At(i, /*must=*/false);
    if (snapshot == nullptr) continue;
    Choice choice = Choose(*snapshot, call, /*must=*/false);
    // In a training variables never rest: nobody knows whether a kernel for that will be asked for,
    // so the node does not stay for it. For one that is there, or being made, it does.
    const bool rest = snapshots.NeedsOf(i) == Needs::kRest;
    if (IsPending(choice)) decision.is_final = false;
    if (choice.ones.has_value() && may_come) {
      if (may_ask) decision.asks |= 1u << i;
      if (!rest) decision.is_final = false;
    }
    if (choice.kernel != nullptr) {
      return SetKernel(Why::kKernel, i, std::move(choice), &decision);
    }
    if (choice.slower != nullptr) {
      // At rest, it was slower than an expansion that has constants for variables.
      if (rest) continue;
      SetReason(Why::kSlower, nullptr, &decision);
      if (decision.why == Why::kSlower) decision.choice = std::move(choice);
      return;
    }
    const Why why = WhyNone(caller, *snapshot, choice, call);
    if (choice.unchecked != nullptr && CanCheck(caller)) {
      decision.asks |= 1u << i;
      decision.is_final = false;
    } else if (choice.shape_class == nullptr && may_come && !call.has_empty_input()) {
      if (may_ask && snapshot->HasSizes(call)) decision.asks |= 1u << i;
      if (!rest) decision.is_final = false;
    }
    may_ask = may_ask && NoneWillCome(choice);
    if (!rest || why == Why::kPending) SetReason(why, choice.shape_class, &decision);
  }
}

// The first group that has a kernel, or that is worth waiting for. Where none will come, the call
// is refused, unless it only has to be `invariant`.
void DecideMust(Snapshots& snapshots, const Caller& caller, const Options& options,
                const Signature& call, Decision* result) {
  Decision& decision = *result;
  decision.route = Route::kRefuse;
  const bool served = caller.compiler.allowed && caller.compiler.running;
  size_t last = 0;
  bool may_come = false;
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const KernelSnapshot* snapshot = snapshots.At(i, /*must=*/true);
    if (snapshot == nullptr) continue;
    Choice choice = Choose(*snapshot, call, /*must=*/true);
    const bool may_ask = CanCompile(caller) && served && !call.has_empty_input();
    // With deterministic ops the kernel of a call stays the same.
    if (choice.ones.has_value() && may_ask && !caller.measuring && !snapshots.Deterministic()) {
      decision.asks |= 1u << i;
    }
    if (choice.kernel != nullptr) {
      const bool exact = !options.strict() || choice.kernel->record.exact;
      return SetKernel(exact ? Why::kKernel : Why::kNotExact, i, std::move(choice), &decision);
    }
    // A call that has a kernel already does not stop for a better one.
    if (snapshots.NeedsOf(i) == Needs::kRest) {
      if (choice.shape_class == nullptr && may_ask) decision.asks |= 1u << i;
      continue;
    }
    last = i;
    may_come |= CanCompile(caller) && !NoneWillCome(choice) && !call.has_empty_input();
    const bool hopeless = !options.must() && !may_ask && !IsPending(choice);
    const bool settled = NoneWillCome(choice) || !served || hopeless;
    SetReason(caller.measuring ? Why::kMeasuring : WhyNone(caller, *snapshot, choice, call),
              choice.shape_class, &decision);
    if (!settled && !caller.measuring) {
      decision.route = Route::kCompile;
      decision.group = i;
      return;
    }
  }
  if (!options.must()) {
    decision.route = Route::kExpansion;
    decision.is_final = decision.why != Why::kNoGroup && !may_come && !caller.measuring;
    return;
  }
  // Who waits for what is settled is told at once, and in its own words.
  if (decision.why != Why::kNoGroup && !caller.measuring) {
    decision.route = Route::kCompile;
    decision.group = last;
  }
}

}  // namespace

Options OptionsOf(const Caller& caller, Options options) {
  if (options.must() && caller.derived && !caller.measuring) options.backend = Backend::kAuto;
  return options;
}

Decision Decide(Snapshots& snapshots, const Caller& caller, const Options& asked,
                const Device& device) {
  const Options options = OptionsOf(caller, asked);
  Decision decision;
  if (const auto why = WhyNoKernelMayRun(caller, options, device)) {
    decision.route = options.must() ? Route::kRefuse : Route::kExpansion;
    decision.why = *why;
    decision.is_final = !options.must();
    return decision;
  }
  if (const Signature* call = snapshots.Call(); call == nullptr) {
    DecideWithoutShapes(snapshots, caller, options, &decision);
  } else if (options.must() || options.invariant()) {
    DecideMust(snapshots, caller, options, *call, &decision);
  } else {
    DecideAuto(snapshots, caller, *call, &decision);
  }
  return decision;
}

bool IsReplaced(const Decision& decision, Snapshots& snapshots) {
  if (!decision.is_final) return false;
  const Signature* call = snapshots.Call();
  return call == nullptr || !call->has_empty_input();
}

}  // namespace composite
