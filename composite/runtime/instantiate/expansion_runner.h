// Runs the expansion of one node inside the node's kernel.
//
// An expansion is instantiated in the function runtime that the call brings along, or in a private
// one where there is none (constant folding), and runs to its end on the calling thread: a kernel
// that waited for other threads here would hang at one thread.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_EXPANSION_RUNNER_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_EXPANSION_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

class InstantiatedExpansion;

// Thread-safe.
class ExpansionRunner {
 public:
  // What one node keeps instantiated; an expansion takes about 0.1 MB. In a process that holds
  // kManyHandles, a node that needs another keeps only that one.
  static constexpr int kHandles = 8;
  static constexpr int kManyHandles = 512;
  // The nodes of a process that keep any, unless more take turns. Beyond, those that ran least
  // recently give theirs up.
  static constexpr int kNodes = 512;

  // An expansion for one call. Gives what it keeps back when the last call that uses it is done.
  using Ready = std::shared_ptr<const InstantiatedExpansion>;
  using DoneCallback = std::function<void(const absl::Status&)>;

  // `on_cpu`: the node's inputs lie in the host's memory.
  explicit ExpansionRunner(bool on_cpu);
  ~ExpansionRunner();

  // Computes all outputs of `context`, or says why not. `attrs` are those of the node. `strict`:
  // the ops of the body run as they are, one after the other.
  absl::Status Run(tensorflow::OpKernelContext* context,
                   const std::shared_ptr<const OpVersion>& version, tensorflow::AttrSlice attrs,
                   bool strict);

  // The same in two steps, for a node that is not on a CPU: the ops of the body may run on several
  // devices, and whoever waited for them here would hold up the others. `done` is called once the
  // outputs are set, or with the reason why not; `context` must live until then.
  absl::StatusOr<Ready> Prepare(tensorflow::OpKernelContext* context,
                                const std::shared_ptr<const OpVersion>& version,
                                tensorflow::AttrSlice attrs);
  static void RunOnDevice(Ready ready, tensorflow::OpKernelContext* context, bool strict,
                          DoneCallback done);

 private:
  class Keepers;

  absl::StatusOr<Ready> Find(tensorflow::FunctionLibraryRuntime* runtime,
                             tensorflow::OpKernelContext* context,
                             const std::shared_ptr<const OpVersion>& version,
                             tensorflow::AttrSlice attrs);
  Ready FindCached(tensorflow::FunctionLibraryRuntime* runtime,
                   const tensorflow::OpKernelContext& context, const OpVersion* version,
                   absl::Span<const InputFact> facts) ABSL_LOCKS_EXCLUDED(mu_);
  void Cache(const Ready& ready) ABSL_LOCKS_EXCLUDED(mu_);

  const bool on_cpu_;
  // Set when an expansion asked for the value of an input: values are facts only then, so that
  // nobody compares them in vain.
  std::atomic<bool> needs_constants_{false};
  std::atomic<uint64_t> last_run_{0};  // on the clock of Keepers
  bool was_taken_from_ = false;        // guarded by the mutex of Keepers
  ForkMutex mu_;
  std::list<Ready> ready_ ABSL_GUARDED_BY(mu_);  // the one used last comes first
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_EXPANSION_RUNNER_H_
