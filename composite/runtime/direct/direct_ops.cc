// The ops by which a process makes a direct function and calls it: eagerly, since to TensorFlow a
// call of an op costs a third of a call of a function.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/direct/direct_function.h"
#include "composite/runtime/direct/eager_only_op.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataTypeVector;
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
    .Output("op: string")
    .Output("refusal: string")
    .Attr("name: string")
    .Attr("config: string")
    .Attr("Tcaptures: list(type) >= 0")
    .SetIsStateful()
    .SetShapeFn(AnyShapes)
    .Doc(R"doc(
Makes a function ready to be called on the thread of its caller, in this process.

captures: The last arguments of all calls.
name: Of the function, as the process knows it.
config: A serialized ConfigProto, for grappler.
function: It lives as long as this tensor.
op: The op that calls it, of `function` and the arguments before the captures.
refusal: Why it is not to be called so; "" if it is.
)doc");

// As a tensor holds it.
struct Held {
  std::shared_ptr<const DirectFunction> function;

  static std::string TypeName() { return "composite::DirectFunction"; }
  // It is of this process.
  void Encode(tensorflow::VariantTensorData*) const {}
  bool Decode(const tensorflow::VariantTensorData&) { return false; }
};

class DirectCallOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    const Held* held =
        input.dims() == 0 ? input.scalar<tensorflow::Variant>()().get<Held>() : nullptr;
    OP_REQUIRES(
        context, held != nullptr,
        absl::InvalidArgumentError(absl::StrCat(type_string(), ": input 0 is no direct function")));
    // Without a line in the log: the function says better what is wrong.
    context->SetStatus(held->function->Call(context, /*first=*/1));
  }
};

// The op that calls functions of these arguments and results.
absl::StatusOr<std::string> OpFor(const DataTypeVector& arguments, const DataTypeVector& results) {
  static auto* const mu = new ForkMutex;
  static auto* const names = new std::map<std::pair<DataTypeVector, DataTypeVector>, std::string>;
  absl::MutexLock lock(mu);
  const auto key = std::make_pair(arguments, results);
  if (const auto known = names->find(key); known != names->end()) return known->second;
  if (names->size() == kMostEagerOps) {
    return absl::ResourceExhaustedError("there are calls of too many kinds");
  }
  EagerOnlyOp op;
  op.name = absl::StrCat("CompositeDirectCall", names->size());
  op.inputs = {tensorflow::DT_VARIANT};
  op.inputs.insert(op.inputs.end(), arguments.begin(), arguments.end());
  op.outputs = results;
  TF_RETURN_IF_ERROR(Register(
      op, AnyShapes, [](OpKernelConstruction* context) { return new DirectCallOp(context); }));
  return (*names)[key] = op.name;
}

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
    Tensor* function = nullptr;
    Tensor* op = nullptr;
    Tensor* refusal = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &function));
    OP_REQUIRES_OK(context, context->allocate_output(1, {}, &op));
    OP_REQUIRES_OK(context, context->allocate_output(2, {}, &refusal));
    absl::Status made = Make(context, function, op);
    if (!made.ok()) refusal->scalar<tensorflow::tstring>()() = std::string(made.message());
  }

 private:
  absl::Status Make(OpKernelContext* context, Tensor* function, Tensor* op) const {
    std::vector<Tensor> captures;
    for (int i = 0; i < context->num_inputs(); ++i) captures.push_back(context->input(i));
    TF_ASSIGN_OR_RETURN(auto made, DirectFunction::Make(context->function_library(), name_, config_,
                                                        std::move(captures)));
    TF_ASSIGN_OR_RETURN(op->scalar<tensorflow::tstring>()(),
                        OpFor(made->arguments(), made->results()));
    function->scalar<tensorflow::Variant>()() = Held{std::move(made)};
    return absl::OkStatus();
  }

  std::string name_;
  tensorflow::ConfigProto config_;
};

REGISTER_KERNEL_BUILDER(Name("CompositeDirectFunction").Device(tensorflow::DEVICE_CPU),
                        DirectFunctionOp);

}  // namespace
}  // namespace composite
