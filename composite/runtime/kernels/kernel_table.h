// All kernels of this process, and what is asked of the just-in-time worker.
//
// The worker is somebody else's thread (Python's): it takes requests, installs kernels, and
// finishes the requests. This table starts no thread.
#ifndef COMPOSITE_RUNTIME_KERNELS_KERNEL_TABLE_H_
#define COMPOSITE_RUNTIME_KERNELS_KERNEL_TABLE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/kernels/kernel_families.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

// Thread-safe.
class KernelTable {
 public:
  // Shape classes that a group has at a time: three for each layer of the policy, and some. The one
  // that was used longest ago makes room for another; how many come is bounded by RequestBudget.
  static constexpr int kMaxClasses = 24;
  // Requests that wait; what comes beyond is asked again by a later call, unless no node is left
  // that one of them is for.
  static constexpr int kMaxQueue = 1024;

  static KernelTable& Global();

  // The group of a node with these attributes; missing ones have their defaults. The node holds it.
  // `constants`: which of its inputs never change (a list of positions), for kernels that make use
  // of that; null for those that do not.
  std::shared_ptr<KernelGroup> Group(const OpVersion& version, tensorflow::AttrSlice attrs,
                                     const tensorflow::AttrValue* constants, const KernelKind& kind)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Adds a kernel, or takes a new verdict and new times for one of the same name and shapes. A
  // refused record is remembered for explain.
  // Without code the library of the record is opened, or, for a record without library, the kernel
  // must be known already. With code the kernel is a built library's, and serves every group in
  // which the inputs that it packs are constants.
  absl::Status Install(InstalledKernel kernel) ABSL_LOCKS_EXCLUDED(mu_);

  // Asks for a kernel that covers the call, unless that was done meanwhile, is not possible, or the
  // op has had many and the group has made few calls.
  void Enqueue(KernelGroup* group, const Signature& call) ABSL_LOCKS_EXCLUDED(mu_);

  // For backend="tvm": returns when Choose(group, call, must) finds a kernel. FailedPrecondition
  // when none will come, with the reason; Cancelled when `cancelled` says so.
  absl::Status Await(KernelGroup* group, const Signature& call,
                     const std::function<bool()>& cancelled) ABSL_LOCKS_EXCLUDED(mu_);

  // For what XLA compiles: returns once it is settled whether a kernel of the group, whose classes
  // are exact, runs in the call, or at `end`. Asks for the kernel as Enqueue does.
  void AwaitVerdict(KernelGroup* group, const Signature& call, absl::Time end)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Asks for what a call will wait for, with Await if it is a `must` or else with AwaitVerdict: it
  // is made before everything that was asked for earlier.
  void Ask(KernelGroup* group, const Signature& call, bool must) ABSL_LOCKS_EXCLUDED(mu_);

  // The worker's side. NextRequest waits up to `timeout`, and is empty after it or when the worker
  // is stopped.
  absl::optional<tensorflow::NodeDef> NextRequest(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  // `sizes`: where a request is not covered because the values of these inputs, scalars, are sizes:
  // then another is made for its call, of a class that has them.
  // NotFound for a ticket that is not open: finished before, or dropped with its worker.
  absl::Status Finish(const std::string& ticket, const std::string& status,
                      const std::string& reason, absl::Span<const int> sizes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Stopping drops all open requests; a later worker is asked again.
  void SetWorker(bool running) ABSL_LOCKS_EXCLUDED(mu_);
  bool worker_running() const { return worker_running_.load(std::memory_order_acquire); }
  // Requests that wait or are worked on.
  int64_t Pending() const ABSL_LOCKS_EXCLUDED(mu_);

  // Why no kernel is asked for at a group's next call, and what its user can do; "" if one is.
  std::string WhyLater(const OpVersion& version, const KernelGroup& group) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Request {
    std::shared_ptr<KernelGroup> group;
    Signature shapes;
    Signature call;                              // that asked
    SymbolValues hint;                           // the symbols' values in it
    const InstalledKernel* unchecked = nullptr;  // to be checked; null: one is to be made
    bool must = false;
  };
  using Tickets = std::map<std::string, Request>;

  KernelTable() = default;

  // The family of a group that there is.
  KernelFamily& FamilyOf(const OpVersion& version, tensorflow::AttrSlice attrs,
                         const KernelKind& kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddLocked(KernelGroup* group, InstalledKernel kernel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives a new group of a GPU the kernels of built libraries that are portable to it.
  void AddPortableLocked(const OpVersion& version, tensorflow::AttrSlice attrs,
                         const std::string& device, KernelGroup* group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddBuiltLocked(KernelFamily* family, InstalledKernel kernel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status EnqueueLocked(KernelGroup* group, const Signature& call, bool must)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the next ticket out of the queue, which has one.
  std::string NextTicket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The tickets in the queue that no node waits for any more: their functions are gone.
  std::vector<std::string> Abandoned() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether another request may wait, if need be in the place of one that was abandoned.
  bool HasRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has the group not know that the request was made.
  static void Withdraw(const Request& request);
  void Prioritize(KernelGroup* group, const Signature& shapes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Asks for a kernel that takes these inputs for sizes, in place of one that did not. Whether that
  // is another kernel.
  bool AskForSizes(const Request& request, absl::Span<const int> sizes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Has room for another class, if need be in the place of the one that was used longest ago and of
  // its kernel. False while all are being compiled.
  static bool MakeRoom(KernelSnapshot* snapshot);
  static void SetState(KernelGroup* group, const Signature& shapes, ShapeClass::State state,
                       const std::string& reason);

  mutable ForkMutex mu_{[this] {
    new (&work_) absl::CondVar;
    new (&changed_) absl::CondVar;
  }};
  absl::CondVar work_;     // signalled when a request comes or the worker stops
  absl::CondVar changed_;  // signalled when a group or the worker's state changes
  KernelFamilies families_ ABSL_GUARDED_BY(mu_);
  // Tickets: first those that a call waits for, then those of all ops, which take turns.
  std::deque<std::string> queue_ ABSL_GUARDED_BY(mu_);
  Tickets tickets_ ABSL_GUARDED_BY(mu_);  // open: queued or taken
  int64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t served_ ABSL_GUARDED_BY(mu_) = 0;  // requests that were taken
  std::atomic<bool> worker_running_{false};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_KERNEL_TABLE_H_
