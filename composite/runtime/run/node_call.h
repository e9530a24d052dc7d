// One call of a node: its decisions, until one can be carried out.
#ifndef COMPOSITE_RUNTIME_RUN_NODE_CALL_H_
#define COMPOSITE_RUNTIME_RUN_NODE_CALL_H_

#include <string>

#include "absl/status/status.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/run/composite_node.h"
#include "composite/runtime/run/kernel_view.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// The kernels that a call asks for, as a value that outlives it.
class AskedKernels {
 public:
  AskedKernels() = default;
  AskedKernels(const CompositeNode::Binding& binding, const Signature& call, unsigned groups)
      : binding_(&binding), call_(call), groups_(groups) {}

  // When the call has succeeded: what fails is not worth a kernel, and shapes that do not fit
  // together would teach the groups classes of no use.
  void Enqueue() const;

 private:
  const CompositeNode::Binding* binding_ = nullptr;
  Signature call_;
  unsigned groups_ = 0;  // bit i: group i
};

class NodeCall {
 public:
  // All of them must live as long.
  NodeCall(const CompositeNode& node, const CompositeNode::Binding& binding, const Options& options,
           tensorflow::OpKernelContext* context)
      : node_(node),
        binding_(binding),
        options_(options),
        context_(context),
        snapshots_(binding.views, context) {}

  Decision Next() {
    return Decide(snapshots_, node_.CallerAs(*binding_.version), options_, node_.device());
  }

  // Of a decision that is neither a kernel nor the expansion: waits for the kernel, after which the
  // next decision is another one, or says why the call is refused.
  absl::Status Settle(const Decision& decision);

  // Whether the kernel of a decision that was made for another call may run in this one.
  bool Applies(const Decision& decision) { return snapshots_.Applies(decision.group); }
  // The kernel of the decision is of no use in this call.
  void Leave(const Decision& decision) { snapshots_.Leave(decision.group); }

  AskedKernels Asked(const Decision& decision) {
    if (decision.asks == 0) return AskedKernels();
    return AskedKernels(binding_, *snapshots_.Call(), decision.asks);
  }
  void Enqueue(const Decision& decision) {
    if (decision.asks != 0) Asked(decision).Enqueue();
  }
  // Notes what the call runs. `ran`: the kernel of the decision, or the expansion.
  void Note(const Decision& decision, Route ran);
  const Signature& signature() { return *snapshots_.Call(); }
  const KernelSnapshot* first_snapshot() const { return snapshots_.first(); }
  KernelView& ViewOf(const Decision& decision) const { return *binding_.views[decision.group]; }
  // Why the call has no kernel. The one that was waited for says more than the decision.
  std::string WhyNone(const Decision& decision, const OpVersion& version) const;
  // Whether no kernel is an error.
  bool must() const { return OptionsOf(node_.CallerAs(*binding_.version), options_).must(); }

 private:
  absl::Status Await(const Decision& decision);
  // The first group that the call asks for a kernel; null if there is none.
  const KernelGroup* GroupToAsk(const Decision& decision) const;

  const CompositeNode& node_;
  const CompositeNode::Binding& binding_;
  const Options& options_;
  tensorflow::OpKernelContext* const context_;
  CallSnapshots snapshots_;
  absl::Status awaited_;  // what became of the kernel that was waited for last
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_NODE_CALL_H_
