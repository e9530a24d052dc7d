// The optimized forms of an expansion that runs often, for the shapes that its runs have in common.
//
// Each form runs for shapes only that fit together. What the optimizers put in the place of several
// ops may not look: TF 2.21's fused product reads as many biases as it has columns, however many
// there are.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_HOT_EXPANSION_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_HOT_EXPANSION_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/instantiate/instantiated_function.h"
#include "composite/runtime/instantiate/optimized_expansion.h"
#include "composite/runtime/request/kernel_shapes.h"
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
  // Whether an optimized form may run for the shapes of these inputs.
  bool Fit(tensorflow::OpKernelContext* context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // What is remembered of shapes that fit; to infer them again takes tens of microseconds.
  static constexpr int kFitting = 256;

  const std::shared_ptr<const Expansion> expansion_;
  std::atomic<const Form*> exact_{nullptr};  // the form of one run's shapes, if there is such a one
  ForkMutex mu_;
  int runs_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_set<Signature> fitting_ ABSL_GUARDED_BY(mu_);
  std::vector<tensorflow::PartialTensorShape> shapes_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const OptimizedExpansion> requested_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<const Form>> forms_ ABSL_GUARDED_BY(mu_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_HOT_EXPANSION_H_
