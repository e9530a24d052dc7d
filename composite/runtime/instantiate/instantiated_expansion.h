// An expansion that is ready to run in one function runtime, on a CPU or on another device. Gives
// its handles back when the last call that uses it is done.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_INSTANTIATED_EXPANSION_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_INSTANTIATED_EXPANSION_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/instantiate/hot_expansion.h"
#include "composite/runtime/instantiate/instantiated_function.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

class InstantiatedExpansion {
 public:
  using Runtime = tensorflow::FunctionLibraryRuntime;
  using Library = tensorflow::FunctionLibraryDefinition;
  using DoneCallback = std::function<void(const absl::Status&)>;

  // For calls like that of `context`.
  static absl::StatusOr<std::shared_ptr<const InstantiatedExpansion>> Make(
      Runtime* runtime, const tensorflow::OpKernelContext& context,
      std::shared_ptr<const OpVersion> version, std::shared_ptr<const Expansion> expansion);

  InstantiatedExpansion(Runtime* runtime, std::shared_ptr<const OpVersion> version,
                        std::shared_ptr<const Expansion> expansion);
  InstantiatedExpansion(const InstantiatedExpansion&) = delete;
  InstantiatedExpansion& operator=(const InstantiatedExpansion&) = delete;

  // A new runtime may have the address of one that is gone.
  bool Serves(Runtime* runtime, const tensorflow::OpKernelContext& context,
              const OpVersion* version, absl::Span<const InputFact> facts) const;

  // On a CPU, to the end.
  absl::Status Run(Runtime* runtime, tensorflow::OpKernelContext* context, bool strict) const;

  // On any other device. `done` is called once the outputs are set, maybe before this returns.
  void RunOnDevice(tensorflow::OpKernelContext* context, bool strict, DoneCallback done) const;

  // A failed run's error with the node that failed, and so with the author's place: the fast
  // executor tells neither, so the other one runs the graph again. The same error where ops keep
  // state, which must not see two runs.
  absl::Status Placed(Runtime* runtime, tensorflow::OpKernelContext* context,
                      const absl::Status& status) const;

  absl::Status CheckShapes(absl::Span<const InputFact> facts) const;

 private:
  absl::Status InstantiateOnCpu();
  absl::Status InstantiateOnDevice(const tensorflow::OpKernelContext& context);
  void MayBecomeHot();
  // The ops as oneDNN's passes rewrite them; null if they rewrite none.
  std::unique_ptr<const InstantiatedFunction> Rewritten(Runtime* runtime) const;
  // Runs these, once the ops themselves have refused a call. The first error where they refuse it
  // too, or where ops keep state, which must not see two runs.
  absl::Status RunRewritten(Runtime* runtime, tensorflow::OpKernelContext* context,
                            const absl::Status& first) const;
  // What a call on one device runs.
  const InstantiatedFunction& Form(Runtime* runtime, tensorflow::OpKernelContext* context,
                                   bool strict) const;

  Runtime* const runtime_;
  const std::shared_ptr<const OpVersion> version_;
  const std::shared_ptr<const Expansion> expansion_;
  std::shared_ptr<const Library> library_;
  std::unique_ptr<const InstantiatedFunction> plain_;
  std::unique_ptr<HotExpansion> hot_;  // null: the ops run as they are
  mutable ForkMutex mu_;
  mutable absl::optional<std::unique_ptr<const InstantiatedFunction>> rewritten_
      ABSL_GUARDED_BY(mu_);  // empty: nothing was refused yet
  // What has run a call that the ops had refused; null: none has.
  mutable std::atomic<const InstantiatedFunction*> serving_{nullptr};
  // On a device that is no CPU.
  bool is_spread_ = false;              // over several devices
  std::vector<std::string> resources_;  // where those lie that the function is spread for
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_INSTANTIATED_EXPANSION_H_
