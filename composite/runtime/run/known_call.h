// What calls of a node came to, for the calls that are like them.
#ifndef COMPOSITE_RUNTIME_RUN_KNOWN_CALL_H_
#define COMPOSITE_RUNTIME_RUN_KNOWN_CALL_H_

#include <atomic>

#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/run/composite_node.h"
#include "composite/runtime/run/kernel_outputs.h"
#include "composite/runtime/run/node_call.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// A call that a kernel of the node's first group answered, and all that this follows from: the same
// of another call gives the same decision. One block of memory, since in a graph of many nodes what
// a call reads of its node is in no cache.
struct KnownCall {
  const CompositeNode::Binding* binding;
  const KernelGroup* group;
  const KernelSnapshot* snapshot;  // of the group
  Options options;
  Signature shapes;
  Decision decision;
  OutputShapes outputs;
  const KnownCall* before = nullptr;  // that was kept
};

// Of one node on a CPU. Thread-safe, without a lock: what was kept stays for the life of the node,
// so that each is kept after twice as many calls as the one before, and there are few.
class KnownCalls {
 public:
  KnownCalls() = default;
  ~KnownCalls();
  KnownCalls(const KnownCalls&) = delete;
  KnownCalls& operator=(const KnownCalls&) = delete;

  // The call that was kept last if this one is like it, or null. Whether the group applies is for
  // the caller to see.
  const KnownCall* Find(const CompositeNode::Binding& binding, const Options& options,
                        tensorflow::OpKernelContext* context) const;

  // Takes in a call that Find did not know, and for which `decision` chose a kernel.
  void Note(const CompositeNode::Binding& binding, const Options& options,
            tensorflow::OpKernelContext* context, NodeCall& call, const Decision& decision,
            const OutputShapes& outputs);

 private:
  static constexpr int kFirst = 8;  // calls
  static constexpr int kMost = 1 << 20;

  std::atomic<const KnownCall*> last_{nullptr};
  // Guesses: two threads may count one call.
  std::atomic<const KernelSnapshot*> candidate_{nullptr};
  std::atomic<int> calls_{0};  // in a row with the snapshot of the candidate
  std::atomic<int> needed_{kFirst};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_KNOWN_CALL_H_
