// The groups of kernels that one node reads, in the order in which it reads them.
#ifndef COMPOSITE_RUNTIME_KERNELS_NODE_GROUPS_H_
#define COMPOSITE_RUNTIME_KERNELS_NODE_GROUPS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

struct NodeGroup {
  std::shared_ptr<KernelGroup> group;
  Needs needs;
};

// The groups of a node with these attributes on a device, the most special first; the last one
// needs nothing. Kernels for GPUs make no use of constants. `invariant`: see Options.
std::vector<NodeGroup> GroupsOf(const OpVersion& version, tensorflow::AttrSlice attrs,
                                const Device& device, bool invariant);

// The inputs of a node that are what a variable holds.
std::vector<int> VariableInputs(tensorflow::AttrSlice attrs);
// Those that are arguments of the function that the node is in.
std::vector<int> ArgumentInputs(tensorflow::AttrSlice attrs);

// What a decision needs to know of a call besides its shapes. `dtypes`: of the node.
Caller CallerOf(const OpVersion& version, DtypeSet dtypes, bool measuring);

// The snapshots of a node that is not running: its groups as they are now, its variables at rest.
class GroupSnapshots : public Snapshots {
 public:
  // Without `call` some dim is not known. The attributes must live as long as this.
  GroupSnapshots(const OpVersion& version, tensorflow::AttrSlice attrs, const Device& device,
                 bool invariant, absl::optional<Signature> call)
      : version_(version),
        attrs_(attrs),
        device_(device),
        invariant_(invariant),
        call_(std::move(call)) {}

  const Signature* Call() override { return call_.has_value() ? &*call_ : nullptr; }
  size_t size() override;
  Needs NeedsOf(size_t i) override { return groups_[i].needs; }
  const KernelSnapshot* At(size_t i, bool must) override { return &groups_[i].group->snapshot(); }
  bool Deterministic() override;

  const KernelGroup& group(size_t i) const { return *groups_[i].group; }
  std::shared_ptr<KernelGroup> shared_group(size_t i) {
    return i < size() ? groups_[i].group : nullptr;
  }

 private:
  const OpVersion& version_;
  const tensorflow::AttrSlice attrs_;
  const Device device_;
  const bool invariant_;
  const absl::optional<Signature> call_;
  std::vector<NodeGroup> groups_;  // empty until somebody asks
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_NODE_GROUPS_H_
