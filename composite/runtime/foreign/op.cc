// CompositeTvmCall and CompositeStatefulTvmCall: the ops that call a foreign function.
//
// One op for all functions, so that a graph which names one can be read by whoever has not loaded
// it: the node says which library and function, and where each output's shape comes from.
#include "composite/runtime/foreign/op.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/cuda/driver.h"
#include "composite/runtime/foreign/dlpack.h"
#include "composite/runtime/foreign/function.h"
#include "composite/runtime/foreign/library.h"
#include "composite/runtime/foreign/shape_rules.h"
#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/run/gpu_device.h"
#include "composite/runtime/run/kernel_host.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::shape_inference::InferenceContext;

absl::Status CheckDtypes(const char* what, tensorflow::DataTypeSlice dtypes, int count) {
  for (int i = 0; i < count; ++i) {
    if (ToDlpack(dtypes[i]).code == kNoAbiCode) {
      return absl::InvalidArgumentError(absl::StrCat(what, " ", i, " is ",
                                                     tensorflow::DataTypeString(dtypes[i]),
                                                     ", which no function of TVM takes"));
    }
  }
  return absl::OkStatus();
}

class TvmCallOp : public OpKernel {
 public:
  explicit TvmCallOp(OpKernelConstruction* context)
      : TvmCallOp(context, AttrSlice(context->def())) {}

  TvmCallOp(OpKernelConstruction* context, const AttrSlice& attrs) : OpKernel(context) {
    std::string function;
    OP_REQUIRES_OK(context, GetNodeAttr(attrs, "function", &function));
    const std::pair<std::string, std::string> names =
        absl::StrSplit(function, absl::MaxSplits(':', 1));
    name_ = names.second;
    on_gpu_ = context->device_type() == tensorflow::DEVICE_GPU;
    OP_REQUIRES_OK(context, Named(rules_.Read(attrs)));
    OP_REQUIRES_OK(context, Named(CheckDtypes("input", context->input_types(), rules_.inputs)));
    OP_REQUIRES_OK(context,
                   Named(CheckDtypes("output", context->output_types(), context->num_outputs())));
    auto loaded = FindForeignLibrary(names.first);
    OP_REQUIRES_OK(context, Named(loaded.status()));
    auto found = (*loaded)->Find(name_);
    OP_REQUIRES_OK(context, found.status());
    function_ = std::move(found->function);
    for (const PartialTensorShape& shape : rules_.shapes) {
      stated_.emplace_back();
      if (shape.IsFullyDefined()) shape.AsTensorShape(&stated_.back());
    }
  }

  void Compute(OpKernelContext* context) override {
    std::vector<Tensor> copies;
    Inputs inputs;
    OP_REQUIRES_OK(context, AlignedInputs(context, &copies, &inputs));
    OP_REQUIRES_OK(context, rules_.returns ? Make(context, inputs) : Fill(context, inputs));
  }

 private:
  absl::Status Named(const absl::Status& status) const {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("function ", name_, ": ", status.message()));
  }

  // Slices of tensors and what other frameworks lent may begin anywhere.
  absl::Status AlignedInputs(OpKernelContext* context, std::vector<Tensor>* copies,
                             Inputs* inputs) const {
    for (int i = 0; i < rules_.inputs; ++i) {
      const Tensor& input = context->input(i);
      inputs->push_back(&input);
      if (IsAligned(input.data())) continue;
      if (copies->empty()) copies->reserve(rules_.inputs);  // inputs point to them
      copies->emplace_back();
      Tensor& copy = copies->back();
      TF_RETURN_IF_ERROR(context->allocate_temp(input.dtype(), input.shape(), &copy));
      if (on_gpu_) {
        TF_RETURN_IF_ERROR(CopyOnDevice(context, input, &copy));
      } else {
        std::memcpy(copy.data(), input.data(), input.TotalBytes());
      }
      Count(GlobalStats().copies);
      inputs->back() = &copy;
    }
    return absl::OkStatus();
  }

  // Waits until the copy is the stream's next work, and not until it is made.
  static absl::Status CopyOnDevice(OpKernelContext* context, const Tensor& from, Tensor* to) {
    absl::Status made;
    absl::Notification given;
    context->op_device_context()->CopyTensorInSameDevice(
        &from, static_cast<tensorflow::Device*>(context->device()), to,
        [&](const absl::Status& status) {
          made = status;
          given.Notify();
        });
    given.WaitForNotification();
    return made;
  }

  // The shape of an output, which is known before the call. `given`: the next input that is one.
  absl::Status KnownShape(OpKernelContext* context, int output, int* given,
                          TensorShape* shape) const {
    const int source = rules_.shape_of[output];
    if (source != kGiven) {
      *shape = source == kStated ? stated_[output] : context->input(source).shape();
      return absl::OkStatus();
    }
    const Tensor& vector = context->input((*given)++);
    if (vector.dims() != 1) {
      return Named(absl::InvalidArgumentError(absl::StrCat(
          "the shape of output ", output, " is a tensor of rank ", vector.dims(), ", not 1")));
    }
    const auto dims = vector.flat<int64_t>();
    absl::Status status =
        TensorShape::BuildTensorShape(absl::MakeConstSpan(dims.data(), dims.size()), shape);
    if (status.ok()) return status;
    return Named(absl::InvalidArgumentError(
        absl::StrCat("the shape of output ", output, " is none: ", status.message())));
  }

  absl::Status Fill(OpKernelContext* context, const Inputs& inputs) {
    Outputs outputs;
    int given = rules_.inputs;
    for (int i = 0; i < context->num_outputs(); ++i) {
      TensorShape shape;
      TF_RETURN_IF_ERROR(KnownShape(context, i, &given, &shape));
      Tensor* output = nullptr;
      TF_RETURN_IF_ERROR(context->allocate_output(i, shape, &output));
      outputs.push_back(output);
    }
    if (on_gpu_) return FillOnGpu(context, inputs, outputs);
    KernelHost host(context);
    return function_->Fill(host.host(), inputs, outputs);
  }

  // What the function launches is the next work of TensorFlow's stream; nobody waits for it.
  absl::Status FillOnGpu(OpKernelContext* context, const Inputs& inputs,
                         const Outputs& outputs) const {
    auto device = CudaDeviceOf(*context->device());
    TF_RETURN_IF_ERROR(Named(device.status()));
    const CudaScope scope(**CudaDriver::Get(), device->context);
    TF_RETURN_IF_ERROR(scope.status());
    return function_->FillOn({{tvm_abi::kCuda, device->number}, StreamOf(context)}, inputs,
                             outputs);
  }

  absl::Status Make(OpKernelContext* context, const Inputs& inputs) {
    auto made = function_->Make(inputs, output_types());
    TF_RETURN_IF_ERROR(made.status());
    int given = rules_.inputs;
    for (int i = 0; i < context->num_outputs(); ++i) {
      const TensorShape& shape = (*made)[i].shape();
      PartialTensorShape expected = rules_.shapes[i];
      if (rules_.shape_of[i] != kStated) {
        TensorShape known;
        TF_RETURN_IF_ERROR(KnownShape(context, i, &given, &known));
        expected = known;
      }
      if (!expected.IsCompatibleWith(shape)) {
        return Named(absl::InvalidArgumentError(absl::StrCat(
            "result ", i, " has shape ", shape.DebugString(), ", not ", expected.DebugString())));
      }
      context->set_output(i, (*made)[i]);
    }
    return absl::OkStatus();
  }

  std::string name_;
  bool on_gpu_ = false;
  ShapeRules rules_;
  std::vector<TensorShape> stated_;  // of the outputs whose shape is stated
  std::shared_ptr<const ForeignFunction> function_;
};

absl::Status InferShapesOfNode(InferenceContext* c) {
  ShapeRules rules;
  TF_RETURN_IF_ERROR(rules.Read(c));
  return InferShapes(rules, c);
}

constexpr char kDoc[] = R"doc(
Calls a function of a library that composite.tf_op.Module loaded.

inputs: What the function is passed, before its outputs; then shapes of outputs that only the call
knows, which are not passed.
function: The SHA-256 of the library's file, a colon, and the name of the function.
returns: The function returns its outputs; otherwise they are passed to it, to be filled.
shape_of: For each output the input whose shape it has; -1: shapes has it; -2: the next of the
shapes among the inputs. If empty: -1 where there are shapes or the outputs are returned, or 0.
shapes: For each output its shape. If empty: none is stated.
)doc";

#define COMPOSITE_TVM_CALL(name)        \
  REGISTER_OP(name)                     \
      .Input("inputs: Tin")             \
      .Output("outputs: Tout")          \
      .Attr("function: string")         \
      .Attr("returns: bool = false")    \
      .Attr("shape_of: list(int) = []") \
      .Attr("shapes: list(shape) = []") \
      .Attr("Tin: list(type) >= 0")     \
      .Attr("Tout: list(type) >= 0")    \
      .SetShapeFn(InferShapesOfNode)    \
      .Doc(kDoc)

COMPOSITE_TVM_CALL("CompositeTvmCall");
COMPOSITE_TVM_CALL("CompositeStatefulTvmCall").SetIsStateful();

constexpr char kGpuDoc[] = R"doc(
Calls a function for GPUs of a library that composite.tf_op.Module loaded, on TensorFlow's stream.

inputs: What the function is passed, before its outputs.
given: The shapes of outputs that only the call knows.
function: The SHA-256 of the library's file, a colon, and the name of the function.
shape_of: For each output the input whose shape it has; -1: shapes has it; -2: the next of given.
If empty: -1 where there are shapes, or 0.
shapes: For each output its shape. If empty: none is stated.
)doc";

#define COMPOSITE_GPU_TVM_CALL(name)    \
  REGISTER_OP(name)                     \
      .Input("inputs: Tin")             \
      .Input("given: N * int64")        \
      .Output("outputs: Tout")          \
      .Attr("function: string")         \
      .Attr("shape_of: list(int) = []") \
      .Attr("shapes: list(shape) = []") \
      .Attr("Tin: list(type) >= 0")     \
      .Attr("N: int >= 0")              \
      .Attr("Tout: list(type) >= 0")    \
      .SetShapeFn(InferShapesOfNode)    \
      .Doc(kGpuDoc)

COMPOSITE_GPU_TVM_CALL("CompositeGpuTvmCall");
COMPOSITE_GPU_TVM_CALL("CompositeStatefulGpuTvmCall").SetIsStateful();

REGISTER_KERNEL_BUILDER(
    Name("CompositeGpuTvmCall").Device(tensorflow::DEVICE_GPU).HostMemory("given"), TvmCallOp);
REGISTER_KERNEL_BUILDER(
    Name("CompositeStatefulGpuTvmCall").Device(tensorflow::DEVICE_GPU).HostMemory("given"),
    TvmCallOp);

REGISTER_KERNEL_BUILDER(Name("CompositeTvmCall").Device(tensorflow::DEVICE_CPU), TvmCallOp);
REGISTER_KERNEL_BUILDER(Name("CompositeStatefulTvmCall").Device(tensorflow::DEVICE_CPU), TvmCallOp);

// How many ops there are for eager calls: each takes some kilobytes.
constexpr size_t kMostEagerOps = 1024;

class EagerOpFactory : public tensorflow::kernel_factory::OpKernelFactory {
 public:
  explicit EagerOpFactory(NodeDef call) : call_(std::move(call)) {}
  OpKernel* Create(OpKernelConstruction* context) override {
    return new TvmCallOp(context, AttrSlice(call_));
  }

 private:
  const NodeDef call_;
};

// One argument for each dtype of a list.
absl::Status AddArguments(const NodeDef& call, const char* list, absl::string_view prefix,
                          google::protobuf::RepeatedPtrField<OpDef::ArgDef>* arguments) {
  tensorflow::DataTypeVector dtypes;
  TF_RETURN_IF_ERROR(GetNodeAttr(call, list, &dtypes));
  for (size_t i = 0; i < dtypes.size(); ++i) {
    OpDef::ArgDef* argument = arguments->Add();
    argument->set_name(absl::StrCat(prefix, i));
    argument->set_type(dtypes[i]);
  }
  return absl::OkStatus();
}

absl::Status RegisterEagerOp(const std::string& name, const NodeDef& call) {
  tensorflow::OpRegistry* const ops = tensorflow::OpRegistry::Global();
  const OpDef* called = nullptr;
  TF_RETURN_IF_ERROR(ops->LookUpOpDef(call.op(), &called));
  OpDef op;
  op.set_name(name);
  op.set_is_stateful(called->is_stateful());
  TF_RETURN_IF_ERROR(AddArguments(call, "Tin", "x", op.mutable_input_arg()));
  TF_RETURN_IF_ERROR(AddArguments(call, "Tout", "y", op.mutable_output_arg()));
  ShapeRules rules;
  TF_RETURN_IF_ERROR(rules.Read(AttrSlice(call)));
  ops->Register([op, rules](tensorflow::OpRegistrationData* data) {
    data->op_def = op;
    data->shape_inference_fn = [rules](InferenceContext* c) { return InferShapes(rules, c); };
    return absl::OkStatus();
  });
  TF_RETURN_IF_ERROR(ops->ProcessRegistrations());
  tensorflow::KernelDefBuilder cpu(name.c_str());
  cpu.Device(tensorflow::DEVICE_CPU);
  tensorflow::kernel_factory::OpKernelRegistrar(cpu.Build(), "TvmCallOp",
                                                std::make_unique<EagerOpFactory>(call));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> EagerOpFor(const NodeDef& call) {
  static auto* const mu = new ForkMutex;
  static auto* const names = new std::map<std::string, std::string>;
  absl::MutexLock lock(mu);
  std::string key;
  tensorflow::SerializeToStringDeterministic(call, &key);
  if (const auto known = names->find(key); known != names->end()) return known->second;
  if (names->size() == kMostEagerOps) return std::string();
  const std::string name = absl::StrCat("CompositeEagerTvmCall", names->size());
  TF_RETURN_IF_ERROR(RegisterEagerOp(name, call));
  (*names)[key] = name;
  return name;
}

}  // namespace composite
