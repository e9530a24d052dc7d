// CompositeTvmCall and CompositeStatefulTvmCall: the ops that call a foreign function.
//
// One op for all functions, so that a graph which names one can be read by whoever has not loaded
// it: the node says which library and function, and where each output's shape comes from.
#include "tensorflow/core/framework/op.h"

#include "composite/runtime/foreign/call_op.h"
#include "composite/runtime/foreign/shape_rules.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::shape_inference::InferenceContext;

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
tvm_device: The device that the function runs on, by TVM's name and a number ("ext_dev:0"); its
tensors are copied there and back. If empty: the CPU.
)doc";

#define COMPOSITE_TVM_CALL(name)        \
  REGISTER_OP(name)                     \
      .Input("inputs: Tin")             \
      .Output("outputs: Tout")          \
      .Attr("function: string")         \
      .Attr("returns: bool = false")    \
      .Attr("shape_of: list(int) = []") \
      .Attr("shapes: list(shape) = []") \
      .Attr("tvm_device: string = ''")  \
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

}  // namespace
}  // namespace composite
