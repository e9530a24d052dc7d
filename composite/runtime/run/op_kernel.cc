#include "composite/runtime/run/op_kernel.h"

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/instantiate/expansion_runner.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/run/composite_node.h"
#include "composite/runtime/run/device_op.h"
#include "composite/runtime/run/kernel_call.h"
#include "composite/runtime/run/kernel_view.h"
#include "composite/runtime/run/node_call.h"
#include "composite/runtime/run/node_trace.h"
#include "composite/runtime/run/region_dump.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// On a CPU.
class CompositeOp : public OpKernel {
 public:
  CompositeOp(OpKernelConstruction* context, std::string op_name)
      : OpKernel(context), node_(*this, std::move(op_name)), expansion_(/*on_cpu=*/true) {
    OP_REQUIRES_OK(context, node_.Init(context));
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
    absl::StatusOr<const Binding*> binding = node_.Bind();
    if (!binding.ok()) return binding.status();
    absl::StatusOr<Options> options = node_.OptionsNow();
    if (!options.ok()) return options.status();
    return Run(context, **binding, *options);
  }

  absl::Status Run(OpKernelContext* context, const Binding& binding, const Options& options) {
    NodeCall call(node_, binding, options, context);
    if (binding.counts != nullptr && RegionsAreDumped()) {
      DumpRegion(*this, *binding.version, call.signature(), context);
    }
    for (;;) {
      const Decision decision = call.Next();
      absl::optional<absl::Status> done;
      if (decision.route == Route::kExpansion) {
        done = RunExpansion(context, binding, decision, options, &call);
      } else if (decision.route == Route::kKernel) {
        done = RunKernel(context, binding, decision, options, &call);
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

  // Empty when the kernel cannot be used in this call. A kernel that meets an index out of range
  // says so: the error is TensorFlow's own to raise. One without memory for its workspace leaves
  // the call to the expansion, which may need less.
  absl::optional<absl::Status> RunKernel(OpKernelContext* context, const Binding& binding,
                                         const Decision& decision, const Options& options,
                                         NodeCall* call) {
    const Choice& choice = decision.choice;
    auto packed = call->ViewOf(decision).Packed(context, *choice.kernel);
    absl::Status status = packed.status();
    if (status.ok()) {
      if (*packed == nullptr) return absl::nullopt;
      if (!node_.is_uncounted()) Count(GlobalStats().kernel_launches);
      call->Note(decision, Route::kKernel);
      const KernelTrace trace(*this, decision);
      status = CallKernel(context, call->signature(), choice, **packed);
    }
    if (absl::IsOutOfRange(status)) {
      return RunExpansion(context, binding, decision, options, call);
    }
    if (call->must() || !absl::IsResourceExhausted(status)) return status;
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
    const ExpansionTrace trace(*this, node_, *binding.version, decision);
    return expansion_.Run(context, binding.version, node_.attrs(), options.strict());
  }

  CompositeNode node_;
  ExpansionRunner expansion_;
  std::atomic<bool> told_{false};  // that there was no memory for a kernel
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
