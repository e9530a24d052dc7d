// The ops by which a process keeps the kernel of a node as long as a tensor. TensorFlow keeps the
// kernels of eager ops, and the functions that these have instantiated, until the process ends.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/direct/own_kernel.h"
#include "composite/runtime/direct/step_container.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"

namespace composite {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorValue;

REGISTER_OP("CompositeKeep")
    .Input("node: string")
    .Output("kernel: variant")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(R"doc(
Makes the kernel of a node on the CPU, in this process.

node: A serialized NodeDef.
kernel: It lives as long as this tensor.
)doc");

REGISTER_OP("CompositeRunKept")
    .Input("kernel: variant")
    .Input("args: Targs")
    .Output("results: Tresults")
    .Attr("Targs: list(type) >= 0")
    .Attr("Tresults: list(type) >= 0")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(R"doc(
Runs the kernel of a node.

kernel: Made by CompositeKeep.
args: The node's inputs.
results: The node's outputs.
)doc");

// As a tensor holds it.
struct Kept {
  std::shared_ptr<const OwnKernel> own;

  static std::string TypeName() { return "composite::Kept"; }
  // It is of this process.
  void Encode(tensorflow::VariantTensorData*) const {}
  bool Decode(const tensorflow::VariantTensorData&) { return false; }
};

class KeepOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& given = context->input(0);
    OP_REQUIRES(context, given.dims() == 0,
                absl::InvalidArgumentError("CompositeKeep: node is no scalar"));
    tensorflow::NodeDef node;
    OP_REQUIRES(context, node.ParseFromString(given.scalar<tensorflow::tstring>()()),
                absl::InvalidArgumentError("CompositeKeep: node is no NodeDef"));
    auto own = OwnKernel::Make(context->function_library(), std::move(node));
    OP_REQUIRES_OK(context, own.status());
    Tensor* kernel = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &kernel));
    kernel->scalar<tensorflow::Variant>()() = Kept{*std::move(own)};
  }
};

// A call of a kept kernel, which lives until it is done.
class KeptCall {
 public:
  KeptCall(std::shared_ptr<const OwnKernel> own, OpKernelContext* outer,
           AsyncOpKernel::DoneCallback done)
      : own_(std::move(own)),
        outer_(outer),
        done_(std::move(done)),
        step_(OwnKernel::NewStep()),
        container_(*own_->device(), step_) {
    // The outer node has these tensors until it is done.
    for (int i = 1; i < outer->num_inputs(); ++i) {
      inputs_.emplace_back(const_cast<Tensor*>(&outer->input(i)));
    }
    params_ = own_->ParamsOf(step_, &container_, inputs_);
    params_.cancellation_manager = outer->cancellation_manager();
    context_ = std::make_unique<OpKernelContext>(&params_, own_->kernel().num_outputs());
  }

  static void Run(std::shared_ptr<KeptCall> call) {
    OpKernel& kernel = call->own_->kernel();
    tensorflow::Device* const device = call->own_->device();
    OpKernelContext* const context = call->context_.get();
    if (AsyncOpKernel* const async = kernel.AsAsync()) {
      device->ComputeAsync(async, context, [call = std::move(call)] { call->Finish(); });
    } else {
      device->Compute(&kernel, context);
      call->Finish();
    }
  }

 private:
  void Finish() {
    absl::Status status = context_->status();
    for (int i = 0; status.ok() && i < context_->num_outputs(); ++i) {
      const absl::StatusOr<Tensor> made = own_->OutputOf(context_.get(), i);
      status = made.status();
      if (made.ok()) outer_->set_output(i, *made);
    }
    if (!status.ok()) outer_->SetStatus(status);
    done_();
  }

  const std::shared_ptr<const OwnKernel> own_;
  OpKernelContext* const outer_;
  const AsyncOpKernel::DoneCallback done_;
  const int64_t step_;
  StepContainer container_;
  absl::InlinedVector<TensorValue, 8> inputs_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> context_;
};

class RunKeptOp : public AsyncOpKernel {
 public:
  explicit RunKeptOp(OpKernelConstruction* context) : AsyncOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("Targs", &arguments_));
    OP_REQUIRES_OK(context, context->GetAttr("Tresults", &results_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    const Tensor& given = context->input(0);
    const Kept* const kept =
        given.dims() == 0 ? given.scalar<tensorflow::Variant>()().get<Kept>() : nullptr;
    OP_REQUIRES_ASYNC(
        context, kept != nullptr,
        absl::InvalidArgumentError("CompositeRunKept: kernel is not made by CompositeKeep"), done);
    const OpKernel& kernel = kept->own->kernel();
    OP_REQUIRES_ASYNC(context,
                      kernel.input_types() == arguments_ && kernel.output_types() == results_,
                      absl::InvalidArgumentError(absl::StrCat(
                          "CompositeRunKept: ", kernel.type_string(), " has other dtypes")),
                      done);
    KeptCall::Run(std::make_shared<KeptCall>(kept->own, context, std::move(done)));
  }

 private:
  tensorflow::DataTypeVector arguments_;
  tensorflow::DataTypeVector results_;
};

REGISTER_KERNEL_BUILDER(Name("CompositeKeep").Device(tensorflow::DEVICE_CPU), KeepOp);
REGISTER_KERNEL_BUILDER(Name("CompositeRunKept").Device(tensorflow::DEVICE_CPU), RunKeptOp);

}  // namespace
}  // namespace composite
