// The ops by which a process makes direct calls.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "composite/runtime/direct/direct_call.h"
#include "composite/runtime/direct/direct_function.h"
#include "composite/runtime/direct/direct_op.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"

namespace composite {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

REGISTER_OP("CompositeDirectFunction")
    .Input("captures: Tcaptures")
    .Output("call: variant")
    .Output("address: int64")
    .Output("refusal: string")
    .Attr("name: string")
    .Attr("config: string")
    .Attr("Tcaptures: list(type) >= 0")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(R"doc(
Makes a function ready to be called on the thread of its caller, in this process.

captures: The last arguments of all calls.
name: Of the function, as the process knows it.
config: A serialized ConfigProto, for grappler.
call: It lives as long as this tensor, and takes the arguments before the captures.
address: Of the DirectCall that `call` holds.
refusal: Why it is not to be called so; "" if it is.
)doc");

REGISTER_OP("CompositeDirectOp")
    .Output("call: variant")
    .Output("address: int64")
    .Output("refusal: string")
    .Attr("node: string")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::UnknownShape)
    .Doc(R"doc(
Makes an op ready to be called on the thread of its caller, in this process.

node: A serialized NodeDef.
call: It lives as long as this tensor.
address: Of the DirectCall that `call` holds.
refusal: Why it is not to be called so; "" if it is.
)doc");

// As a tensor holds it.
struct Held {
  std::shared_ptr<const DirectCall> call;

  static std::string TypeName() { return "composite::DirectCall"; }
  // It is of this process.
  void Encode(tensorflow::VariantTensorData*) const {}
  bool Decode(const tensorflow::VariantTensorData&) { return false; }
};

// Returns a DirectCall, or says why there is none.
class MakingOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Tensor* call = nullptr;
    Tensor* address = nullptr;
    Tensor* refusal = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &call));
    OP_REQUIRES_OK(context, context->allocate_output(1, {}, &address));
    OP_REQUIRES_OK(context, context->allocate_output(2, {}, &refusal));
    address->scalar<int64_t>()() = 0;
    absl::StatusOr<std::shared_ptr<const DirectCall>> made = MakeOnOneCpu(context);
    if (!made.ok()) {
      refusal->scalar<tensorflow::tstring>()() = std::string(made.status().message());
      return;
    }
    address->scalar<int64_t>()() = reinterpret_cast<intptr_t>(made->get());
    call->scalar<tensorflow::Variant>()() = Held{*std::move(made)};
  }

 private:
  absl::StatusOr<std::shared_ptr<const DirectCall>> MakeOnOneCpu(OpKernelContext* context) const {
    // The op itself is on a CPU.
    if (context->function_library()->device_mgr()->ListDevices().size() != 1) {
      return absl::FailedPreconditionError("there are other devices than one CPU");
    }
    return Make(context);
  }

  virtual absl::StatusOr<std::shared_ptr<const DirectCall>> Make(
      OpKernelContext* context) const = 0;
};

class DirectFunctionOp : public MakingOp {
 public:
  explicit DirectFunctionOp(OpKernelConstruction* context) : MakingOp(context) {
    std::string config;
    OP_REQUIRES_OK(context, context->GetAttr("name", &name_));
    OP_REQUIRES_OK(context, context->GetAttr("config", &config));
    OP_REQUIRES(context, config_.ParseFromString(config),
                absl::InvalidArgumentError("CompositeDirectFunction: config is no ConfigProto"));
  }

 private:
  absl::StatusOr<std::shared_ptr<const DirectCall>> Make(OpKernelContext* context) const override {
    std::vector<Tensor> captures;
    for (int i = 0; i < context->num_inputs(); ++i) captures.push_back(context->input(i));
    return DirectFunction::Make(context->function_library(), name_, config_, std::move(captures));
  }

  std::string name_;
  tensorflow::ConfigProto config_;
};

class DirectOpOp : public MakingOp {
 public:
  explicit DirectOpOp(OpKernelConstruction* context) : MakingOp(context) {
    std::string node;
    OP_REQUIRES_OK(context, context->GetAttr("node", &node));
    OP_REQUIRES(context, node_.ParseFromString(node),
                absl::InvalidArgumentError("CompositeDirectOp: node is no NodeDef"));
  }

 private:
  absl::StatusOr<std::shared_ptr<const DirectCall>> Make(OpKernelContext* context) const override {
    return DirectOp::Make(context->function_library(), node_);
  }

  tensorflow::NodeDef node_;
};

REGISTER_KERNEL_BUILDER(Name("CompositeDirectFunction").Device(tensorflow::DEVICE_CPU),
                        DirectFunctionOp);
REGISTER_KERNEL_BUILDER(Name("CompositeDirectOp").Device(tensorflow::DEVICE_CPU), DirectOpOp);

}  // namespace
}  // namespace composite
