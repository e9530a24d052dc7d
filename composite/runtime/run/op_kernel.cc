#include "composite/runtime/run/op_kernel.h"

#include <atomic>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/instantiate/expansion_runner.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/memory/idle_release.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/run/composite_node.h"
#include "composite/runtime/run/device_op.h"
#include "composite/runtime/run/kernel_call.h"
#include "composite/runtime/run/kernel_outputs.h"
#include "composite/runtime/run/kernel_view.h"
#include "composite/runtime/run/known_call.h"
#include "composite/runtime/run/node_call.h"
#include "composite/runtime/run/node_trace.h"
#include "composite/runtime/run/region_dump.h"
#include "composite/runtime/run/resting_inputs.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// On a CPU.
class CompositeOp : public OpKernel {
 public:
  CompositeOp(OpKernelConstruction* context, std::string op_name)
      : OpKernel(context), node_(*this, std::move(op_name)), expansion_(/*on_cpu=*/true) {
    OP_REQUIRES_OK(context, node_.Init(context));
    std::vector<int> updates;
    if (!tensorflow::TryGetNodeAttr(AttrSlice(def()), kUpdatesAttr, &updates)) return;
    for (size_t i = 0; i + 1 < updates.size(); i += 2) {
      updates_.push_back({updates[i], updates[i + 1]});
    }
  }

  void Compute(OpKernelContext* context) override {
    // TensorFlow is built without exceptions: one that left this function would end the process.
    try {
      context->SetStatus(Run(context));
    } catch (const std::exception& error) {
      context->SetStatus(absl::InternalError(absl::StrCat(type_string(), ": ", error.what())));
    }
  }

 private:
  using Binding = CompositeNode::Binding;

  absl::Status Run(OpKernelContext* context) {
    CountCall();
    absl::StatusOr<Options> options = node_.OptionsNow();
    if (!options.ok()) return options.status();
    const bool invariant = options->invariant();
    absl::StatusOr<const Binding*> binding = node_.Bind(invariant);
    if (!binding.ok()) return binding.status();
    if ((*binding)->may_rest) {
      auto resting = resting_.Note(context);
      // With deterministic ops, a node keeps the kernels that it knows from its first call.
      if (resting && !DeterminismRequired()) {
        binding = node_.Rest(*std::move(resting), invariant);
      }
    }
    return Run(context, **binding, *options);
  }

  absl::Status Run(OpKernelContext* context, const Binding& binding, const Options& options) {
    NodeCall call(node_, binding, options, context);
    if (binding.counts != nullptr && RegionsAreDumped()) {
      DumpRegion(*this, *binding.version, call.signature(), context);
    }
    const KnownCall* known = known_.Find(binding, options, context);
    if (known != nullptr && call.Applies(known->decision)) {
      const CallOf of{known->decision, known->shapes, known->outputs};
      absl::optional<absl::Status> done = RunKernel(context, binding, of, options, &call);
      if (done.has_value()) return *std::move(done);
      call.Leave(known->decision);
    }
    for (;;) {
      const Decision decision = call.Next();
      absl::optional<absl::Status> done;
      if (decision.route == Route::kExpansion) {
        done = RunExpansion(context, binding, decision, options, &call);
      } else if (decision.route == Route::kKernel) {
        done = RunNewKernel(context, binding, decision, options, &call);
        if (!done.has_value()) call.Leave(decision);
      } else {
        absl::Status settled = call.Settle(decision);
        if (!settled.ok()) return settled;
      }
      if (!done.has_value()) continue;
      if (done->ok()) call.Enqueue(decision);
      return *std::move(done);
    }
  }

  // A kernel, and what it is called with.
  struct CallOf {
    const Decision& decision;
    const Signature& shapes;
    const OutputShapes& outputs;
  };

  // Of a decision that was just made.
  absl::optional<absl::Status> RunNewKernel(OpKernelContext* context, const Binding& binding,
                                            const Decision& decision, const Options& options,
                                            NodeCall* call) {
    OutputShapes outputs;
    const Choice& choice = decision.choice;
    absl::Status status = ShapesOfOutputs(choice.kernel->record, choice.values, &outputs);
    if (!status.ok()) return status;
    known_.Note(binding, options, context, *call, decision, outputs);
    const CallOf of{decision, call->signature(), outputs};
    return RunKernel(context, binding, of, options, call);
  }

  // Empty when the kernel cannot be used in this call. A kernel that meets an index out of range
  // says so: the error is TensorFlow's own to raise. One without memory for its workspace leaves
  // the call to the expansion, which may need less.
  absl::optional<absl::Status> RunKernel(OpKernelContext* context, const Binding& binding,
                                         const CallOf& of, const Options& options, NodeCall* call) {
    const Decision& decision = of.decision;
    const InstalledKernel& kernel = *decision.choice.kernel;
    std::shared_ptr<const PackedConstants::Tensors> packed;
    absl::Status status;
    if (!kernel.record.packed.empty()) {
      auto made = call->ViewOf(decision).Packed(context, kernel);
      status = made.status();
      if (status.ok()) packed = *std::move(made);
      if (status.ok() && packed == nullptr) return absl::nullopt;
    }
    if (status.ok()) {
      if (!node_.is_uncounted()) Count(GlobalStats().kernel_launches);
      call->Note(decision, Route::kKernel);
      const KernelTrace trace(*this, decision);
      status = CallKernel(
          context, of.shapes, kernel, of.outputs,
          packed == nullptr ? absl::Span<const tensorflow::Tensor>() : absl::MakeSpan(*packed),
          updates_);
    }
    if (absl::IsOutOfRange(status)) {
      return RunExpansion(context, binding, decision, options, call);
    }
    if (call->must() || options.invariant() || !absl::IsResourceExhausted(status)) return status;
    if (!told_.exchange(true, std::memory_order_relaxed)) {
      LOG(WARNING) << type_string() << " (node " << name()
                   << "): TensorFlow's own ops run instead: " << status.message();
    }
    return RunExpansion(context, binding, decision, options, call);
  }

  absl::Status RunExpansion(OpKernelContext* context, const Binding& binding,
                            const Decision& decision, const Options& options, NodeCall* call) {
    call->Note(decision, Route::kExpansion);
    if (!node_.is_uncounted()) Count(GlobalStats().expansion_runs);
    if (options.invariant()) TellOfExpansion(decision, *binding.version, call);
    const ExpansionTrace trace(*this, node_, *binding.version, decision);
    // What an optimizer makes of the ops from some run on has other bits.
    const bool plain = options.strict() || options.invariant();
    return expansion_.Run(context, binding.version, node_.attrs(), plain);
  }

  // Once: rows of TensorFlow's ops may depend on their batch. One that is empty has none.
  void TellOfExpansion(const Decision& decision, const OpVersion& version, NodeCall* call) {
    if (node_.is_uncounted() || call->signature().has_empty_input()) return;
    if (decision.route == Route::kKernel || varies_.exchange(true, std::memory_order_relaxed)) {
      return;
    }
    LOG(WARNING) << type_string() << " (node " << name() << ") was called with numerics=\""
                 << Name(Numerics::kInvariant)
                 << "\" and runs TensorFlow's own ops, whose rows may depend on their batch: "
                 << call->WhyNone(decision, version);
  }

  CompositeNode node_;
  RestingInputs resting_{ArgumentInputs(AttrSlice(def()))};
  KnownCalls known_;
  ExpansionRunner expansion_;
  std::vector<Forward> updates_;
  std::atomic<bool> varies_{false};  // it was told that rows may depend on their batch
  std::atomic<bool> told_{false};    // that there was no memory for a kernel
};

class CompositeOpFactory : public tensorflow::kernel_factory::OpKernelFactory {
 public:
  explicit CompositeOpFactory(std::string op_name) : op_name_(std::move(op_name)) {}

  OpKernel* Create(OpKernelConstruction* context) override {
    if (context->device_type() == tensorflow::DEVICE_CPU) {
      return new CompositeOp(context, op_name_);
    }
    return new DeviceOp(context, op_name_);
  }

 private:
  const std::string op_name_;
};

}  // namespace

std::unique_ptr<tensorflow::kernel_factory::OpKernelFactory> NewOpKernelFactory(
    std::string op_name) {
  return std::make_unique<CompositeOpFactory>(std::move(op_name));
}

}  // namespace composite
