#include "composite/runtime/run/expansion_runner.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/run/expansion_library.h"
#include "composite/runtime/run/hot_expansion.h"
#include "composite/runtime/run/input_facts.h"
#include "composite/runtime/run/instantiated_function.h"
#include "composite/runtime/run/private_runtime.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/util/determinism.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

constexpr char kNeverKnown[] =
    ", even when the op runs: it follows neither from shapes of inputs nor from small inputs";

absl::InlinedVector<InputFact, 8> Facts(OpKernelContext* context, bool on_cpu, bool constants) {
  absl::InlinedVector<InputFact, 8> facts = ShapeFacts(context);
  for (int i = 0; constants && i < context->num_inputs(); ++i) {
    const Tensor& input = context->input(i);
    if (input.NumElements() <= kMostConstantElements &&
        (on_cpu || context->input_memory_type(i) == tensorflow::HOST_MEMORY)) {
      facts[i].constant = &input;
    }
  }
  return facts;
}

// Arguments and results of the function are inputs and outputs of the kernel, without copies.
class KernelFrame : public tensorflow::CallFrameInterface {
 public:
  // `keeps_results`: otherwise a run is for its error alone.
  explicit KernelFrame(OpKernelContext* context, bool keeps_results = true)
      : context_(context), keeps_results_(keeps_results) {}

  size_t num_args() const override { return context_->num_inputs(); }
  size_t num_retvals() const override { return context_->num_outputs(); }

  absl::Status GetArg(int index, const Tensor** value) override {
    *value = &context_->input(index);
    return absl::OkStatus();
  }

  absl::Status SetRetval(int index, const Tensor& value) override {
    if (value.dtype() != context_->expected_output_dtype(index)) {
      return absl::InternalError("an expansion returns another dtype than its op");
    }
    if (keeps_results_) context_->set_output(index, value);
    return absl::OkStatus();
  }

 private:
  OpKernelContext* const context_;
  const bool keeps_results_;
};

using Library = tensorflow::FunctionLibraryDefinition;

}  // namespace

class InstantiatedExpansion {
 public:
  static absl::StatusOr<std::shared_ptr<const InstantiatedExpansion>> Make(
      FunctionLibraryRuntime* runtime, std::shared_ptr<const OpVersion> version,
      std::shared_ptr<const Expansion> expansion) {
    TF_ASSIGN_OR_RETURN(std::shared_ptr<const Library> library,
                        LibraryFor(*runtime->GetFunctionLibraryDefinition(), *expansion));
    TF_ASSIGN_OR_RETURN(std::unique_ptr<const InstantiatedFunction> plain,
                        InstantiatedFunction::Make(runtime, expansion->name, library));
    return std::make_shared<const InstantiatedExpansion>(
        runtime, std::move(version), std::move(expansion), std::move(library), std::move(plain));
  }

  InstantiatedExpansion(FunctionLibraryRuntime* runtime, std::shared_ptr<const OpVersion> version,
                        std::shared_ptr<const Expansion> expansion,
                        std::shared_ptr<const Library> library,
                        std::unique_ptr<const InstantiatedFunction> plain)
      : runtime_(runtime),
        version_(std::move(version)),
        expansion_(std::move(expansion)),
        library_(std::move(library)),
        plain_(std::move(plain)),
        hot_(MayBeOptimized() ? std::make_unique<HotExpansion>(expansion_) : nullptr) {}

  InstantiatedExpansion(const InstantiatedExpansion&) = delete;
  InstantiatedExpansion& operator=(const InstantiatedExpansion&) = delete;

  // A new runtime may have the address of one that is gone.
  bool Serves(FunctionLibraryRuntime* runtime, const OpVersion* version,
              absl::Span<const InputFact> facts) const {
    return runtime_ == runtime && version_.get() == version && expansion_->Matches(facts) &&
           plain_->is_alive();
  }

  absl::Status Run(FunctionLibraryRuntime* runtime, OpKernelContext* context, bool strict) const {
    const InstantiatedFunction* optimized =
        hot_ != nullptr && !strict ? hot_->Find(runtime, context) : nullptr;
    KernelFrame frame(context);
    return Run(runtime, context, optimized != nullptr ? *optimized : *plain_, &frame);
  }

  // A failed run's error with the node that failed, and so with the author's place: the fast
  // executor tells neither, so the other one runs the graph again. The same error where ops keep
  // state, which must not see two runs.
  absl::Status Placed(FunctionLibraryRuntime* runtime, OpKernelContext* context,
                      const absl::Status& status) const {
    if (!expansion_->fdef.control_ret().empty()) return status;
    auto telling = InstantiatedFunction::MakeTelling(runtime, expansion_->name, library_);
    if (!telling.ok()) return status;
    KernelFrame frame(context, /*keeps_results=*/false);
    absl::Status again = Run(runtime, context, **telling, &frame);
    return again.ok() ? status : again;
  }

  absl::Status CheckShapes(absl::Span<const InputFact> facts) const {
    return composite::CheckShapes(*expansion_, facts);
  }

 private:
  static absl::Status Run(FunctionLibraryRuntime* runtime, OpKernelContext* context,
                          const InstantiatedFunction& function, KernelFrame* frame) {
    FunctionLibraryRuntime::Options options(context->step_id());
    options.rendezvous = context->rendezvous();
    options.cancellation_manager = context->cancellation_manager();
    options.collective_executor = context->collective_executor();
    options.step_container = context->step_container();
    options.stats_collector = context->stats_collector();
    options.run_all_kernels_inline = true;
    // context->runner() would hand work to the pool whose thread this is, and then wait for it.
    std::function<void(std::function<void()>)> inline_runner = [](std::function<void()> work) {
      work();
    };
    options.runner = &inline_runner;
    return runtime->RunSync(options, function.handle(), frame);
  }

  // Where ops are deterministic, all calls run the same graph; functions of the caller's library
  // are not in the expansion's.
  bool MayBeOptimized() const {
    return runtime_->device()->device_type() == tensorflow::DEVICE_CPU &&
           !tensorflow::OpDeterminismRequired() && library_ == expansion_->library;
  }

  FunctionLibraryRuntime* const runtime_;
  const std::shared_ptr<const OpVersion> version_;
  const std::shared_ptr<const Expansion> expansion_;
  const std::shared_ptr<const Library> library_;
  const std::unique_ptr<const InstantiatedFunction> plain_;
  const std::unique_ptr<HotExpansion> hot_;
};

// The nodes that keep expansions instantiated: no more of them than take turns. An eager program
// has a node for each value of an attribute, and TensorFlow forgets none of them.
class ExpansionRunner::Keepers {
 public:
  static Keepers& Global() {
    static auto* all = new Keepers;  // nodes of other threads outlive static objects
    return *all;
  }

  // Advances with each expansion that is instantiated.
  uint64_t Now() const { return clock_.load(std::memory_order_relaxed); }

  void Add(ExpansionRunner* runner) ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<std::list<Ready>> taken;  // destroyed without the locks
    absl::MutexLock lock(&mu_);
    clock_.fetch_add(1, std::memory_order_relaxed);
    if (!all_.insert(runner).second) return;
    // One that comes back takes turns with the others: with fewer places each would lose its own
    // before its next turn.
    if (std::exchange(runner->was_taken_from_, false)) ++places_;
    if (all_.size() > places_) taken = TakeFromSome(runner);
  }

  void Remove(ExpansionRunner* runner) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    all_.erase(runner);
  }

 private:
  // Of many at once: to find them takes a look at all.
  std::vector<std::list<Ready>> TakeFromSome(const ExpansionRunner* but)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<std::pair<uint64_t, ExpansionRunner*>> others;
    for (ExpansionRunner* one : all_) {
      if (one != but) others.emplace_back(one->last_run_.load(std::memory_order_relaxed), one);
    }
    const size_t count = std::min(others.size(), places_ / 8);
    std::nth_element(others.begin(), others.begin() + count, others.end());
    std::vector<std::list<Ready>> taken;
    for (size_t i = 0; i < count; ++i) {
      ExpansionRunner* one = others[i].second;
      absl::MutexLock lock(&one->mu_);
      taken.push_back(std::move(one->ready_));
      one->ready_.clear();
      one->was_taken_from_ = true;
      all_.erase(one);
    }
    return taken;
  }

  std::atomic<uint64_t> clock_{1};
  ForkMutex mu_;
  size_t places_ ABSL_GUARDED_BY(mu_) = kNodes;
  absl::flat_hash_set<ExpansionRunner*> all_ ABSL_GUARDED_BY(mu_);
};

ExpansionRunner::ExpansionRunner(bool on_cpu) : on_cpu_(on_cpu) {}
ExpansionRunner::~ExpansionRunner() { Keepers::Global().Remove(this); }

absl::Status ExpansionRunner::Run(OpKernelContext* context,
                                  const std::shared_ptr<const OpVersion>& version,
                                  tensorflow::AttrSlice attrs, bool strict) {
  FunctionLibraryRuntime* runtime = context->function_library();
  if (runtime == nullptr) runtime = PrivateRuntime();
  last_run_.store(Keepers::Global().Now(), std::memory_order_relaxed);
  absl::StatusOr<Ready> ready = Find(runtime, context, version, attrs);
  if (!ready.ok()) return ready.status();
  absl::Status status = (*ready)->Run(runtime, context, strict);
  if (absl::IsInvalidArgument(status)) {
    absl::Status placed = (*ready)->CheckShapes(ShapeFacts(context));
    if (absl::IsInvalidArgument(placed)) return placed;
    return (*ready)->Placed(runtime, context, status);
  }
  return status;
}

absl::StatusOr<ExpansionRunner::Ready> ExpansionRunner::Find(
    FunctionLibraryRuntime* runtime, OpKernelContext* context,
    const std::shared_ptr<const OpVersion>& version, tensorflow::AttrSlice attrs) {
  const bool constants = needs_constants_.load(std::memory_order_relaxed);
  absl::InlinedVector<InputFact, 8> facts = Facts(context, on_cpu_, constants);
  Ready cached = FindCached(runtime, version.get(), facts);
  if (cached != nullptr) return cached;
  absl::StatusOr<std::shared_ptr<const Expansion>> expansion = GetExpansion(version, attrs, facts);
  if (IsNotYet(expansion.status())) {
    // Everything is known now that a caller can know.
    if (constants) return WithSuffix(expansion.status(), kNeverKnown);
    needs_constants_.store(true, std::memory_order_relaxed);
    return Find(runtime, context, version, attrs);
  }
  if (!expansion.ok()) return expansion.status();
  absl::StatusOr<Ready> ready =
      InstantiatedExpansion::Make(runtime, version, *std::move(expansion));
  if (ready.ok()) Cache(*ready);
  return ready;
}

ExpansionRunner::Ready ExpansionRunner::FindCached(FunctionLibraryRuntime* runtime,
                                                   const OpVersion* version,
                                                   absl::Span<const InputFact> facts) {
  absl::MutexLock lock(&mu_);
  for (auto it = ready_.begin(); it != ready_.end(); ++it) {
    if (!(*it)->Serves(runtime, version, facts)) continue;
    ready_.splice(ready_.begin(), ready_, it);
    return ready_.front();
  }
  return nullptr;
}

void ExpansionRunner::Cache(const Ready& ready) {
  std::vector<Ready> dropped;  // destroyed without the lock: to release a handle takes others
  {
    absl::MutexLock lock(&mu_);
    const bool many = InstantiatedFunction::count() > kManyHandles;
    const size_t keep = many ? 0 : kHandles - 1;
    while (ready_.size() > keep) {
      dropped.push_back(std::move(ready_.back()));
      ready_.pop_back();
    }
    ready_.push_front(ready);
  }
  Keepers::Global().Add(this);
}

}  // namespace composite
