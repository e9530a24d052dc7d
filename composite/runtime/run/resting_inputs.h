// Which inputs of a node never change although nothing says so. In a graph constants and variables
// are known as such. In an eager call, or a function that captured tensors, the weights of a layer
// are inputs like all others.
#ifndef COMPOSITE_RUNTIME_RUN_RESTING_INPUTS_H_
#define COMPOSITE_RUNTIME_RUN_RESTING_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/memory/idle_release.h"
#include "composite/runtime/memory/tensor_identity.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Inputs that are the same few tensors in all calls, and how many: those of so many layers, which
// share the node of their eager calls and take turns.
struct Resting {
  std::vector<int> inputs;
  size_t sets = 1;

  bool operator==(const Resting& other) const {
    return inputs == other.inputs && sets == other.sets;
  }
};

// Of the calls of one node. Thread-safe.
class RestingInputs {
 public:
  // Looks at these inputs, in order; at all if there are none.
  explicit RestingInputs(std::vector<int> inputs) : inputs_(std::move(inputs)) {}

  // Takes in a call. After some calls, of eight times as many each time, or twice where some inputs
  // changed: those that have been a few tensors in all calls since, of those that are worth packing
  // but never all of these, if they are others than the last time; they may be none.
  absl::optional<Resting> Note(tensorflow::OpKernelContext* context) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr int64_t kFirst = 16;  // calls
  static constexpr int64_t kGrowth = 8;
  static constexpr size_t kMostSets = 16;

  // Where an input lay. It is the same tensor as before only if that is still alive: the last calls
  // before it is told hold them, as many as show whether there are ever new ones.
  struct Input {
    int index;
    std::vector<TensorIdentity> identities;
    std::vector<HeldTensor> held;
  };

  bool LooksAt(int input) const;
  void Begin(tensorflow::OpKernelContext* context) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether the input is one of a few tensors still.
  bool Stays(Input& input, const tensorflow::Tensor& now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many tensors are a few, in this time.
  size_t few() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Begins anew, without what is held.
  void Release() ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<int> inputs_;
  ForkMutex mu_;
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_ ABSL_GUARDED_BY(mu_) = kFirst;
  size_t worth_ ABSL_GUARDED_BY(mu_) = 0;  // packing: inputs
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Input> few_ ABSL_GUARDED_BY(mu_);  // of these, so far
  Resting told_ ABSL_GUARDED_BY(mu_);
  IdleRelease idle_{[this] { Release(); }};  // the first to go
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_RESTING_INPUTS_H_
