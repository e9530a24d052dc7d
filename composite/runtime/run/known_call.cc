#include "composite/runtime/run/known_call.h"

#include <memory>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::OpKernelContext;

bool HasShapes(OpKernelContext* context, const Signature& shapes) {
  const int64_t* dim = shapes.dims.data();
  for (int i = 0; i < context->num_inputs(); ++i) {
    const tensorflow::TensorShape& shape = context->input(i).shape();
    if (shape.dims() != shapes.ranks[i]) return false;
    for (int d = 0; d < shape.dims(); ++d) {
      if (shape.dim_size(d) != *dim++) return false;
    }
  }
  return true;
}

bool HasSizes(OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const tensorflow::Tensor& input = context->input(i);
    if (input.dims() == 0 && tensorflow::DataTypeIsInteger(input.dtype())) return true;
  }
  return false;
}

// Whether nothing but the group, which applies, and the shapes of a call made the decision: no
// group before it, no kernel that is asked for, no input whose value may be a size.
bool FollowsFromShapes(OpKernelContext* context, const Decision& decision) {
  if (decision.group != 0 || decision.asks != 0 || decision.choice.ones.has_value()) return false;
  return !HasSizes(context);
}

}  // namespace

KnownCalls::~KnownCalls() {
  const KnownCall* call = last_.load(std::memory_order_acquire);
  while (call != nullptr) {
    const std::unique_ptr<const KnownCall> gone(call);
    call = gone->before;
  }
}

const KnownCall* KnownCalls::Find(const CompositeNode::Binding& binding, const Options& options,
                                  OpKernelContext* context) const {
  const KnownCall* known = last_.load(std::memory_order_acquire);
  if (known == nullptr || known->binding != &binding || !(known->options == options)) {
    return nullptr;
  }
  if (&known->group->snapshot() != known->snapshot) return nullptr;
  return HasShapes(context, known->shapes) ? known : nullptr;
}

void KnownCalls::Note(const CompositeNode::Binding& binding, const Options& options,
                      OpKernelContext* context, NodeCall& call, const Decision& decision,
                      const OutputShapes& outputs) {
  if (!FollowsFromShapes(context, decision)) return;
  const KernelSnapshot* snapshot = call.first_snapshot();
  const bool same = candidate_.load(std::memory_order_relaxed) == snapshot;
  candidate_.store(snapshot, std::memory_order_relaxed);
  const int calls = same ? calls_.load(std::memory_order_relaxed) + 1 : 1;
  calls_.store(calls, std::memory_order_relaxed);
  const int needed = needed_.load(std::memory_order_relaxed);
  if (calls < needed || needed > kMost) return;
  calls_.store(0, std::memory_order_relaxed);
  needed_.store(2 * needed, std::memory_order_relaxed);
  const KnownCall* before = last_.load(std::memory_order_acquire);
  auto kept =
      std::make_unique<KnownCall>(KnownCall{&binding, call.ViewOf(decision).group(), snapshot,
                                            options, call.signature(), decision, outputs, before});
  if (last_.compare_exchange_strong(before, kept.get())) kept.release();
}

}  // namespace composite
