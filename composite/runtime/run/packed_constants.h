// What a node's kernel makes of the node's constants, once: kept while the node lives, and shared
// by the nodes that read one constant.
#ifndef COMPOSITE_RUNTIME_RUN_PACKED_CONSTANTS_H_
#define COMPOSITE_RUNTIME_RUN_PACKED_CONSTANTS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/memory/tensor_identity.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// One packed form, and what it was made of.
struct PackedForm {
  HeldTensor source;
  tensorflow::Tensor packed;
};

// Of one node. Thread-safe.
class PackedConstants {
 public:
  using Tensors = std::vector<tensorflow::Tensor>;

  // `counted`: whether what is packed is part of composite.stats(). `most`: how many constants
  // may take turns, as those of layers that share the node of their eager calls.
  PackedConstants(bool counted, size_t most) : counted_(counted), most_(most) {}

  // The packed arguments of `kernel`, which has some, for this call; packs at the first call with
  // these inputs. Null when somebody might write to what a packed form is made of, and, unless ops
  // have to be deterministic, when the inputs turn out to be others in every call.
  absl::StatusOr<std::shared_ptr<const Tensors>> Get(tensorflow::OpKernelContext* context,
                                                     const InstalledKernel& kernel)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Lets go of what was packed, and of what it was made of.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The packed arguments of a kernel, and what they were made of.
  struct Set {
    const InstalledKernel* kernel;
    std::vector<std::shared_ptr<const PackedForm>> forms;
    std::shared_ptr<const Tensors> tensors;

    bool IsOf(tensorflow::OpKernelContext* context, const InstalledKernel& kernel) const;
  };

  const bool counted_;
  const size_t most_;
  ForkMutex mu_;
  std::vector<Set> sets_ ABSL_GUARDED_BY(mu_);  // the one that was used last is the first
  size_t changes_ ABSL_GUARDED_BY(mu_) = 0;     // of the inputs of one kernel, in as many calls
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_PACKED_CONSTANTS_H_
