// The kernels of one group as one node sees them: when they may run, and with which packed
// arguments. And those of all its groups, in one call.
#ifndef COMPOSITE_RUNTIME_RUN_KERNEL_VIEW_H_
#define COMPOSITE_RUNTIME_RUN_KERNEL_VIEW_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/memory/idle_release.h"
#include "composite/runtime/memory/tensor_identity.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/run/packed_constants.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// Between these calls, variables count as stable from the first call that reads them: a function is
// being prepared that reads variables and writes to none. Calls nest and hold for the process.
void BeginToPresumeStable();
void EndToPresumeStable();

// Inputs of a node, which are variables, count as stable once they have held the same buffers for N
// calls. N grows eightfold when a stable set is replaced too soon, and shrinks again after one that
// lasted. Layers that share the node of their eager calls are several sets. Thread-safe.
class StableInputs {
 public:
  // kReleased: a set that was stable is given up.
  enum Answer { kChanging, kStable, kReleased };

  StableInputs(std::vector<int> inputs, size_t most) : inputs_(std::move(inputs)), most_(most) {}

  // Takes in a call. Equal identities prove equal elements only while the tensor is held, so inputs
  // are held from call N - 1 on. A variable that each training step writes in place then gets
  // another buffer, and is not stable. Memory that others may write to is never stable.
  Answer Note(tensorflow::OpKernelContext* context) ABSL_LOCKS_EXCLUDED(mu_);

  void Clear() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Set {
    std::vector<TensorIdentity> identities;
    std::vector<HeldTensor> held;
    int64_t calls = 0;
    int64_t last = 0;  // call of the node
  };

  // Forget gives up the sets that no call used for long; MakeRoom, where there is no room, the one
  // that was used longest ago. They return whether one of these was stable.
  bool Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static constexpr int64_t kLeastCalls = 16;  // the least N

  const std::vector<int> inputs_;
  const size_t most_;  // sets
  ForkMutex mu_;
  std::vector<Set> sets_ ABSL_GUARDED_BY(mu_);
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t needed_ ABSL_GUARDED_BY(mu_) = kLeastCalls;
};

// Thread-safe.
class KernelView {
 public:
  // `variables`: of Needs::kRest, the inputs that have to be stable. `eager`: the node stands for
  // eager calls. `counted`, `sets`: see PackedConstants.
  KernelView(std::shared_ptr<KernelGroup> group, Needs needs, std::vector<int> variables,
             bool eager, bool counted, size_t sets)
      : group_(std::move(group)),
        needs_(needs),
        last_(eager ? &group_->last_eager() : &own_last_),
        stable_(std::move(variables), sets),
        packed_(counted, sets) {}

  KernelGroup* group() const { return group_.get(); }
  Needs needs() const { return needs_; }

  // With deterministic ops, what the group knew at the last call is all that the node ever sees: a
  // kernel that arrives later would change bits in the middle of a training. For an eager call that
  // is the last one of any node, since TensorFlow and direct calls make new ones. `deterministic`
  // is asked only where that would make a difference.
  const KernelSnapshot& snapshot(absl::FunctionRef<bool()> deterministic);

  // Whether these kernels may run in this call. Must be asked once in every call.
  bool Applies(tensorflow::OpKernelContext* context, bool deterministic);

  // Forgets which inputs are stable, and releases what is packed. Called as well once the node is
  // idle.
  void Release() {
    stable_.Clear();
    packed_.Clear();
  }

  // The packed arguments of a kernel of the group. Null: it cannot be used in this call.
  absl::StatusOr<std::shared_ptr<const PackedConstants::Tensors>> Packed(
      tensorflow::OpKernelContext* context, const InstalledKernel& kernel) {
    idle_.Touch();
    return packed_.Get(context, kernel);
  }

 private:
  const std::shared_ptr<KernelGroup> group_;  // the last to go: the others are of its kernels
  const Needs needs_;
  std::atomic<const KernelSnapshot*> own_last_{nullptr};
  std::atomic<const KernelSnapshot*>* const last_;
  StableInputs stable_;
  PackedConstants packed_;
  IdleRelease idle_{[this] { Release(); }};  // the first to go
};

using KernelViews = std::vector<std::unique_ptr<KernelView>>;

// The views of a node on a device, one for each of its groups. `eager`, `counted`, `sets`: see
// KernelView.
KernelViews ViewsOf(const OpVersion& version, tensorflow::AttrSlice attrs, const Device& device,
                    bool invariant, bool eager, bool counted, size_t sets);

// The views of a node in one call, for as many decisions as the call takes.
class CallSnapshots : public Snapshots {
 public:
  CallSnapshots(const KernelViews& views, tensorflow::OpKernelContext* context)
      : views_(views), context_(context) {}

  const Signature* Call() override;
  size_t size() override { return views_.size(); }
  Needs NeedsOf(size_t i) override { return views_[i]->needs(); }
  const KernelSnapshot* At(size_t i, bool must) override;
  bool Deterministic() override;

  // Whether the kernels of a group may run in this call.
  bool Applies(size_t i);

  // What the last decision read of the first group; null if it read nothing.
  const KernelSnapshot* first() const { return first_; }

  // The next decision has nothing of this group.
  void Leave(size_t i) { left_ |= 1u << i; }
  // Nor of those before it.
  void LeaveUpTo(size_t i) { left_ |= (2u << i) - 1; }

 private:
  const KernelViews& views_;
  tensorflow::OpKernelContext* const context_;
  absl::optional<Signature> call_;
  absl::optional<bool> deterministic_;
  unsigned left_ = 0;     // bit i: group i
  unsigned applies_ = 0;  // of those that were asked
  unsigned asked_ = 0;
  const KernelSnapshot* first_ = nullptr;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_KERNEL_VIEW_H_
