// The kernels of one program with one set of attributes and dtypes, and how a call finds its own.
//
// Nodes read a group without a lock: they see a snapshot, which is immutable and lives as long as
// the group. Only KernelTable changes a group; whoever reads one holds it.
#ifndef COMPOSITE_RUNTIME_KERNELS_KERNEL_GROUP_H_
#define COMPOSITE_RUNTIME_KERNELS_KERNEL_GROUP_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "composite/runtime/cuda/image.h"
#include "composite/runtime/kernels/kernel_record.h"
#include "composite/runtime/kernels/shape_policy.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/request/request_budget.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// When something was last used, by a clock that counts the classes that were asked for.
// Thread-safe.
class LastUse {
 public:
  static void Tick() { clock_.fetch_add(1, std::memory_order_relaxed); }

  // In every call: writes once a tick.
  void Note() {
    const int64_t now = clock_.load(std::memory_order_relaxed);
    if (at() != now) at_.store(now, std::memory_order_relaxed);
  }
  int64_t at() const { return at_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<int64_t> clock_;
  std::atomic<int64_t> at_{clock_.load(std::memory_order_relaxed)};
};

// A kernel that can be called. Immutable; lives as long as its group, its code for ever.
struct InstalledKernel {
  KernelRecord record;
  tvm_abi::Function function = nullptr;    // null for a GPU
  std::vector<tvm_abi::Function> packers;  // by packed argument
  std::shared_ptr<const CudaImage> image;  // null for a CPU
  std::shared_ptr<LastUse> used;  // of the class that it was compiled for; null if there is none
  // The record of a kernel that is yet to be checked, as its library has it; null for any other.
  std::shared_ptr<const tensorflow::NodeDef> unchecked = nullptr;

  bool has_code() const { return function != nullptr || image != nullptr; }
};

// A class of shapes for which a kernel was asked.
struct ShapeClass {
  enum State { kPending, kKernel, kExpansion, kNotCovered, kFailed };

  Signature shapes;
  State state = kPending;
  std::string reason;  // for people, of the last three states
  std::shared_ptr<LastUse> used = std::make_shared<LastUse>();
};

// What a group knows at one moment.
struct KernelSnapshot {
  std::vector<const InstalledKernel*> kernels;  // those with fewer symbols first
  std::vector<ShapeClass> classes;
  // The inputs, scalars, whose values the classes that are asked for have in place of their shapes,
  // because kernels take them for sizes.
  std::vector<int> sizes;
  std::string rejection;  // why the last record was refused; empty if it was not

  // The class of exactly these shapes; null if nobody has asked for it.
  const ShapeClass* Class(const Signature& shapes) const;
  // Whether the call has a size, above 0, in each of the scalars that are sizes.
  bool HasSizes(const Signature& call) const;
};

struct Choice {
  const InstalledKernel* kernel = nullptr;
  SymbolValues values;  // of the kernel's symbols
  // Every output is empty, so there is nothing to run. The kernel's bounds may not hold.
  bool nothing_to_compute = false;
  // Without a kernel: one that was measured slower than the expansion, or the class that covers the
  // call, or neither.
  const InstalledKernel* slower = nullptr;
  const ShapeClass* shape_class = nullptr;
  // Without a kernel and a class: one that covers the call once it is checked.
  const InstalledKernel* unchecked = nullptr;
  // The class to ask for when a kernel covers the call, but has symbols for some of its sizes of 1.
  // One row is another program than any number of them: a product reads its matrix as it lies, and
  // nothing is packed or tiled. Empty if there is no such size, or its class was asked for.
  absl::optional<Signature> ones;
};

// `must`: whatever its measured time, a kernel that covers the call.
Choice Choose(const KernelSnapshot& snapshot, const Signature& call, bool must);

class KernelGroup : public std::enable_shared_from_this<KernelGroup> {
 public:
  // `request`: op, its attributes and `_composite_program`. `budget`: of the op.
  KernelGroup(tensorflow::NodeDef request, std::shared_ptr<RequestBudget> budget);

  const tensorflow::NodeDef& request() const { return request_; }

  // Whether each kernel is for the shapes of one call: what XLA compiles has no others.
  bool has_exact_classes() const { return has_exact_classes_; }

  // Whether these inputs are constants in every call of the group.
  bool HasConstants(const std::vector<PackedArgument>& packed) const;

  const KernelSnapshot& snapshot() const { return *current_.load(std::memory_order_acquire); }

  // What the group knew at the last eager call, for all nodes that stand for eager calls: the same
  // call may be another node's next time.
  std::atomic<const KernelSnapshot*>& last_eager() { return last_eager_; }

  // Notes a call that would ask for a kernel. Whether there were enough of them.
  bool NoteCall() {
    return calls_.fetch_add(1, std::memory_order_relaxed) + 1 >= budget_->calls_needed();
  }
  // What is still to come of the calls that the budget asks for; 0 or less when there were enough.
  int64_t calls_to_come() const {
    return budget_->calls_needed() - calls_.load(std::memory_order_relaxed);
  }

 private:
  friend class KernelTable;

  void Publish(KernelSnapshot snapshot);

  const tensorflow::NodeDef request_;
  const bool has_exact_classes_;
  const std::shared_ptr<RequestBudget> budget_;
  std::atomic<int64_t> calls_{0};  // that asked
  std::atomic<const KernelSnapshot*> current_;
  std::atomic<const KernelSnapshot*> last_eager_{nullptr};
  // Guarded by the mutex of the table. Snapshots change a few times for each class, so that keeping
  // the old ones costs less than to know when the last reader has gone.
  ShapePolicy policy_;
  std::vector<std::unique_ptr<const KernelSnapshot>> snapshots_;
  std::vector<std::unique_ptr<const InstalledKernel>> kernels_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_KERNEL_GROUP_H_
