// CompositeCall as TensorFlow knows it: the declaration and the kernels of the op (see
// node_attrs.h).
#include <string>

#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/tensorflow/op_kernel_registration.h"
#include "composite/runtime/tensorflow/shape_function.h"
#include "composite/runtime/tensorflow/xla_kernel.h"
#include "tensorflow/core/framework/op.h"

namespace composite {
namespace {

REGISTER_OP("CompositeCall")
    .Input("args: Tin")
    .Input("constants: Tconstants")
    .Output("output: Tout")
    .Attr("f: func")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tconstants: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .SetShapeFn(ShapeFunction(kFunctionOp))
    .Doc(R"doc(
Calls a function without state; a compiled kernel may run in its place.

args: The first arguments.
constants: The other ones. XLA has to know their values; elsewhere they are arguments as any.
f: The function; its name holds a hash of what it computes.
)doc");

const bool kernels_registered = [] {
  const tensorflow::OpDef* op_def = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(kFunctionOp, &op_def).ok()) return false;
  RegisterFunctionOpKernels(*op_def);
  RegisterXlaKernels(*op_def, {"constants"});
  return true;
}();

}  // namespace

}  // namespace composite
