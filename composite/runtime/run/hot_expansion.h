// The optimized forms of an expansion that runs often, for the shapes that its runs have in common.
#ifndef COMPOSITE_RUNTIME_RUN_HOT_EXPANSION_H_
#define COMPOSITE_RUNTIME_RUN_HOT_EXPANSION_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/run/instantiated_function.h"
#include "composite/runtime/run/optimized_expansion.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"

namespace composite {

// Of one expansion in one function runtime. Thread-safe.
class HotExpansion {
 public:
  // Runs before the optimizers are asked: they take as long as a hundred runs of a small expansion.
  static constexpr int kRuns = 16;
  // Forms for one expansion: each takes the shapes of those before it, and of runs that they did
  // not.
  static constexpr int kForms = 4;

  explicit HotExpansion(std::shared_ptr<const Expansion> expansion);
  ~HotExpansion();
  HotExpansion(const HotExpansion&) = delete;
  HotExpansion& operator=(const HotExpansion&) = delete;

  // Notes a run. What it is to run; null: the expansion as it is.
  const InstantiatedFunction* Find(tensorflow::FunctionLibraryRuntime* runtime,
                                   tensorflow::OpKernelContext* context);

 private:
  struct Form;

  const Form* Advance(tensorflow::FunctionLibraryRuntime* runtime,
                      tensorflow::OpKernelContext* context) ABSL_LOCKS_EXCLUDED(mu_);
  void Widen(tensorflow::OpKernelContext* context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<const Expansion> expansion_;
  std::atomic<const Form*> form_{nullptr};
  ForkMutex mu_;
  int runs_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<tensorflow::PartialTensorShape> shapes_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const OptimizedExpansion> requested_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<const Form>> forms_ ABSL_GUARDED_BY(mu_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_HOT_EXPANSION_H_
