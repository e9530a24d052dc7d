// The ops by which a process makes a direct function and calls it: eagerly, since to TensorFlow a
// call of an op costs a third of a call of a function.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "composite/runtime/direct/direct_function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

absl::Status AnyShapes(tensorflow::shape_inference::InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->UnknownShape());
  return absl::OkStatus();
}

REGISTER_OP("CompositeDirectFunction")
    .Input("captures: Tcaptures")
    .Output("function: variant")
    .Output("refusal: string")
    .Attr("name: string")
    .Attr("config: string")
    .Attr("Tcaptures: list(type) >= 0")
    .SetIsStateful()
    .SetShapeFn(AnyShapes)
    .Doc(R"doc(
Makes a function ready for CompositeDirectCall, in this process.

captures: The last arguments of all calls.
name: Of the function, as the process knows it.
config: A serialized ConfigProto, for grappler.
function: It lives as long as this tensor.
refusal: Why it is not to be called so; "" if it is.
)doc");

REGISTER_OP("CompositeDirectCall")
    .Input("function: variant")
    .Input("args: Tin")
    .Output("results: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .SetIsStateful()
    .SetShapeFn(AnyShapes)
    .Doc(R"doc(
Calls a function on the thread that calls the op.

function: An output of CompositeDirectFunction.
args: The arguments before its captures.
)doc");

// As a tensor holds it.
struct Held {
  std::shared_ptr<const DirectFunction> function;

  static std::string TypeName() { return "composite::DirectFunction"; }
  // It is of this process.
  void Encode(tensorflow::VariantTensorData*) const {}
  bool Decode(const tensorflow::VariantTensorData&) { return false; }
};

class DirectFunctionOp : public OpKernel {
 public:
  explicit DirectFunctionOp(OpKernelConstruction* context) : OpKernel(context) {
    std::string config;
    OP_REQUIRES_OK(context, context->GetAttr("name", &name_));
    OP_REQUIRES_OK(context, context->GetAttr("config", &config));
    OP_REQUIRES(context, config_.ParseFromString(config),
                absl::InvalidArgumentError("CompositeDirectFunction: config is no ConfigProto"));
  }

  void Compute(OpKernelContext* context) override {
    std::vector<Tensor> captures;
    for (int i = 0; i < context->num_inputs(); ++i) captures.push_back(context->input(i));
    auto made =
        DirectFunction::Make(context->function_library(), name_, config_, std::move(captures));
    Tensor* function = nullptr;
    Tensor* refusal = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &function));
    OP_REQUIRES_OK(context, context->allocate_output(1, {}, &refusal));
    if (made.ok()) {
      function->scalar<tensorflow::Variant>()() = Held{*std::move(made)};
    } else {
      refusal->scalar<tensorflow::tstring>()() = std::string(made.status().message());
    }
  }

 private:
  std::string name_;
  tensorflow::ConfigProto config_;
};

class DirectCallOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    const Held* held =
        input.dims() == 0 ? input.scalar<tensorflow::Variant>()().get<Held>() : nullptr;
    OP_REQUIRES(context, held != nullptr,
                absl::InvalidArgumentError("CompositeDirectCall: input 0 is no direct function"));
    // Without a line in the log: the function says better what is wrong.
    context->SetStatus(held->function->Call(context, /*first=*/1));
  }
};

REGISTER_KERNEL_BUILDER(Name("CompositeDirectFunction").Device(tensorflow::DEVICE_CPU),
                        DirectFunctionOp);
REGISTER_KERNEL_BUILDER(Name("CompositeDirectCall").Device(tensorflow::DEVICE_CPU), DirectCallOp);

}  // namespace
}  // namespace composite
