#include "composite/runtime/run/device_op.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/run/kernel_view.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

DeviceOp::DeviceOp(OpKernelConstruction* context, std::string op_name)
    : AsyncOpKernel(context),
      node_(*this, std::move(op_name)),
      device_(DeviceOfType(context->device_type().type_string())),
      expansion_(/*on_cpu=*/false) {
  OP_REQUIRES_OK(context, node_.Init(context));
}

absl::StatusOr<ExpansionRunner::Ready> DeviceOp::Prepare(OpKernelContext* context) {
  TF_ASSIGN_OR_RETURN(const CompositeNode::Binding* binding, node_.Bind());
  TF_ASSIGN_OR_RETURN(const Options options, node_.OptionsNow());
  CallSnapshots snapshots(binding->views, context);
  const Decision decision = Decide(snapshots, node_.CallerAs(*binding->version), options, device_);
  if (decision.route != Route::kExpansion) {
    return node_.Refusal(*binding->version, decision, absl::OkStatus());
  }
  if (!node_.is_uncounted()) Count(GlobalStats().expansion_runs);
  return expansion_.Prepare(context, binding->version, node_.attrs());
}

void DeviceOp::ComputeAsync(OpKernelContext* context, DoneCallback done) {
  absl::StatusOr<ExpansionRunner::Ready> ready;
  // TensorFlow is built without exceptions: one that left this function would end the process.
  try {
    ready = Prepare(context);
  } catch (const std::exception& error) {
    ready = absl::InternalError(absl::StrCat(type_string(), ": ", error.what()));
  }
  if (!ready.ok()) {
    context->SetStatus(ready.status());
    return done();
  }
  ExpansionRunner::RunOnDevice(*std::move(ready), context,
                               [context, done = std::move(done)](const absl::Status& status) {
                                 context->SetStatus(status);
                                 done();
                               });
}

}  // namespace composite
