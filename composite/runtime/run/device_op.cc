#include "composite/runtime/run/device_op.h"

#include <exception>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/run/gpu_call.h"
#include "composite/runtime/run/gpu_device.h"
#include "composite/runtime/run/host_tensors.h"
#include "composite/runtime/run/node_trace.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

DeviceOp::DeviceOp(OpKernelConstruction* context, std::string op_name)
    : AsyncOpKernel(context),
      has_host_outputs_(absl::c_linear_search(output_memory_types(), tensorflow::HOST_MEMORY)),
      node_(*this, std::move(op_name)),
      expansion_(/*on_cpu=*/false) {
  OP_REQUIRES_OK(context, node_.Init(context));
  if (!node_.device().has_kernels()) return;
  absl::StatusOr<CudaDevice> gpu = CudaDeviceOf(*context->device());
  OP_REQUIRES_OK(context, gpu.status());
  gpu_ = *gpu;
}

absl::StatusOr<DeviceOp::Started> DeviceOp::Start(OpKernelContext* context) {
  TF_ASSIGN_OR_RETURN(const Options options, node_.OptionsNow());
  TF_ASSIGN_OR_RETURN(const CompositeNode::Binding* binding, node_.Bind(options.invariant()));
  NodeCall call(node_, *binding, options, context);
  Started started;
  started.strict = options.strict() || options.invariant();
  for (;;) {
    const Decision decision = call.Next();
    if (decision.route != Route::kKernel && decision.route != Route::kExpansion) {
      TF_RETURN_IF_ERROR(call.Settle(decision));
      continue;
    }
    started.asked = call.Asked(decision);
    if (decision.route == Route::kExpansion) {
      const ExpansionTrace trace(*this, node_, *binding->version, decision);
      call.Note(decision, Route::kExpansion);
      if (!node_.is_uncounted()) {
        Count(GlobalStats().expansion_runs);
        Count(GlobalStats().gpu_expansion_runs);
      }
      TF_ASSIGN_OR_RETURN(started.expansion,
                          expansion_.Prepare(context, binding->version, node_.attrs()));
      return started;
    }
    const absl::optional<absl::Status> launched = Launch(context, call, decision);
    if (launched.has_value() && !launched->ok()) return *launched;
    if (launched.has_value()) {
      call.Note(decision, Route::kKernel);
      return started;
    }
    call.Leave(decision);
  }
}

absl::optional<absl::Status> DeviceOp::Launch(OpKernelContext* context, const NodeCall& call,
                                              const Decision& decision) {
  const KernelTrace trace(*this, decision);
  const absl::optional<absl::Status> launched = CallGpuKernel(context, decision.choice, gpu_);
  if (launched.has_value() && !node_.is_uncounted()) {
    Count(GlobalStats().kernel_launches);
    Count(GlobalStats().gpu_kernel_launches);
  }
  if (!launched.has_value() || launched->ok() || call.must()) return launched;
  if (!told_.exchange(true, std::memory_order_relaxed)) {
    LOG(WARNING) << type_string() << " (node " << name()
                 << "): TensorFlow's own ops run instead: " << launched->message();
  }
  return absl::nullopt;
}

void DeviceOp::ComputeAsync(OpKernelContext* context, DoneCallback done) {
  absl::StatusOr<Started> started;
  // TensorFlow is built without exceptions: one that left this function would end the process.
  try {
    started = Start(context);
  } catch (const std::exception& error) {
    started = absl::InternalError(absl::StrCat(type_string(), ": ", error.what()));
  }
  if (!started.ok() || started->expansion == nullptr) {
    context->SetStatus(started.status());
    if (!started.ok()) return done();
    started->asked.Enqueue();
    return has_host_outputs_ ? WhenStreamIsDone(context, std::move(done)) : done();
  }
  ExpansionRunner::RunOnDevice(std::move(started->expansion), context, started->strict,
                               [context, asked = std::move(started->asked),
                                done = std::move(done)](const absl::Status& status) {
                                 context->SetStatus(status);
                                 if (status.ok()) asked.Enqueue();
                                 done();
                               });
}

}  // namespace composite
