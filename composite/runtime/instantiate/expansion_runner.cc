#include "composite/runtime/instantiate/expansion_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/instantiate/input_facts.h"
#include "composite/runtime/instantiate/instantiated_expansion.h"
#include "composite/runtime/instantiate/instantiated_function.h"
#include "composite/runtime/instantiate/private_runtime.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/env.h"

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

}  // namespace

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
    absl::MutexLock lock(mu_);
    clock_.fetch_add(1, std::memory_order_relaxed);
    if (!all_.insert(runner).second) return;
    // One that comes back takes turns with the others: with fewer places each would lose its own
    // before its next turn.
    if (std::exchange(runner->was_taken_from_, false)) ++places_;
    if (all_.size() > places_) taken = TakeFromSome(runner);
  }

  void Remove(ExpansionRunner* runner) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(mu_);
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
      absl::MutexLock lock(one->mu_);
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

absl::StatusOr<ExpansionRunner::Ready> ExpansionRunner::Prepare(
    OpKernelContext* context, const std::shared_ptr<const OpVersion>& version,
    tensorflow::AttrSlice attrs) {
  FunctionLibraryRuntime* runtime = context->function_library();
  if (runtime == nullptr) {
    return absl::UnavailableError("TensorFlow calls the op without what it runs functions with");
  }
  last_run_.store(Keepers::Global().Now(), std::memory_order_relaxed);
  return Find(runtime, context, version, attrs);
}

void ExpansionRunner::RunOnDevice(Ready ready, OpKernelContext* context, bool strict,
                                  DoneCallback done) {
  auto used = std::make_shared<Ready>(std::move(ready));
  const auto finish = [used, context, done = std::move(done)](absl::Status status) {
    if (absl::IsInvalidArgument(status)) {
      const absl::Status placed = (*used)->CheckShapes(ShapeFacts(context));
      if (absl::IsInvalidArgument(placed)) status = placed;
    }
    // Another thread gives it back: TensorFlow is still about to leave the function, and this may
    // be the last that keeps it.
    tensorflow::Env::Default()->SchedClosure([kept = std::move(*used)] {});
    done(status);
  };
  (*used)->RunOnDevice(context, strict, finish);
}

absl::StatusOr<ExpansionRunner::Ready> ExpansionRunner::Find(
    FunctionLibraryRuntime* runtime, OpKernelContext* context,
    const std::shared_ptr<const OpVersion>& version, tensorflow::AttrSlice attrs) {
  const bool constants = needs_constants_.load(std::memory_order_relaxed);
  absl::InlinedVector<InputFact, 8> facts = Facts(context, on_cpu_, constants);
  Ready cached = FindCached(runtime, *context, version.get(), facts);
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
      InstantiatedExpansion::Make(runtime, *context, version, *std::move(expansion));
  if (ready.ok()) Cache(*ready);
  return ready;
}

ExpansionRunner::Ready ExpansionRunner::FindCached(FunctionLibraryRuntime* runtime,
                                                   const OpKernelContext& context,
                                                   const OpVersion* version,
                                                   absl::Span<const InputFact> facts) {
  absl::MutexLock lock(mu_);
  for (auto it = ready_.begin(); it != ready_.end(); ++it) {
    if (!(*it)->Serves(runtime, context, version, facts)) continue;
    ready_.splice(ready_.begin(), ready_, it);
    return ready_.front();
  }
  return nullptr;
}

void ExpansionRunner::Cache(const Ready& ready) {
  std::vector<Ready> dropped;  // destroyed without the lock: to release a handle takes others
  {
    absl::MutexLock lock(mu_);
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
