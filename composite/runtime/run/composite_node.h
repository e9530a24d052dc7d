// What the kernels of a node have in common, whatever device it is on: what the node computes, and
// which options hold.
#ifndef COMPOSITE_RUNTIME_RUN_COMPOSITE_NODE_H_
#define COMPOSITE_RUNTIME_RUN_COMPOSITE_NODE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/regions/region_counts.h"
#include "composite/runtime/run/kernel_view.h"
#include "composite/runtime/run/resting_inputs.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// The attribute of a node that stands for an eager call: it stays, as an eager op does, and so its
// ops run as those of an eager call.
inline constexpr char kEagerAttr[] = "_composite_eager";

// Thread-safe.
class CompositeNode {
 public:
  // The version that the node stands for at present.
  struct Binding {
    std::shared_ptr<const OpVersion> version;
    KernelViews views;
    RegionCounts* counts;  // null for what is no region, and where calls are not counted
    bool may_rest;         // whether it matters that inputs never change, and nothing says so
    bool invariant;        // which kernels the views are of, see Options
  };

  // `kernel` makes the node's kernel, and lives as long. `op_name`: of the composite; a node of a
  // TF op may have its composition here.
  CompositeNode(const tensorflow::OpKernel& kernel, std::string op_name)
      : kernel_(kernel), op_name_(std::move(op_name)) {}

  // Must come first. An error: the node can have no kernel.
  absl::Status Init(tensorflow::OpKernelConstruction* context);

  // A redefinition reaches the kernels that the eager context has cached: they look whether the
  // registry has changed since they last bound.
  // `invariant`: of the options that hold now.
  absl::StatusOr<const Binding*> Bind(bool invariant) ABSL_LOCKS_EXCLUDED(mu_);

  // The same where these inputs do not change from call to call, as far as anybody knows.
  absl::StatusOr<const Binding*> Rest(Resting resting, bool invariant) ABSL_LOCKS_EXCLUDED(mu_);

  // Those of the node; of the thread that calls, if the call is eager; of the process.
  absl::StatusOr<Options> OptionsNow() const;

  Caller CallerAs(const OpVersion& version) const;

  // Why a call is refused. `awaited`: what became of the last kernel that was waited for.
  absl::Status Refusal(const OpVersion& version, const Decision& decision,
                       const absl::Status& awaited) const;

  // Those of the node, or of the one that stands for it.
  tensorflow::AttrSlice attrs() const {
    return tensorflow::AttrSlice(renamed_.has_value() ? *renamed_ : kernel_.def());
  }
  // Whether the node is no call of the user's, see kUncountedAttr.
  bool is_uncounted() const { return uncounted_; }
  // What its kernels run on.
  const Device& device() const { return device_; }

 private:
  // The last binding to one kind of kernels, and what the registry was then.
  struct Current {
    std::atomic<uint64_t> generation{0};
    std::atomic<const Binding*> binding{nullptr};
  };

  absl::StatusOr<const Binding*> Rebind(uint64_t generation, bool invariant)
      ABSL_LOCKS_EXCLUDED(mu_);
  Binding Bound(std::shared_ptr<const OpVersion> version, bool invariant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  const Binding* Keep(Binding binding) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const tensorflow::OpKernel& kernel_;
  const std::string op_name_;
  // Graph nodes are stamped with their program, eager calls are not. TF 2.21 runs an eager call on
  // the thread that makes it, wrapped into a function of one node; nothing in the context tells it
  // from a function of the user.
  bool eager_ = false;
  bool uncounted_ = false;
  Device device_;
  absl::optional<tensorflow::NodeDef> renamed_;  // see LearnFunction
  DtypeSet dtypes_;                              // of inputs and outputs
  Options own_options_;
  Current current_[2];  // by whether kernels are invariant
  ForkMutex mu_;
  Resting resting_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<const Binding>> bindings_ ABSL_GUARDED_BY(mu_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_COMPOSITE_NODE_H_
