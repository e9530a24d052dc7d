#include "composite/runtime/tensorflow/function_op.h"

#include <string>

#include "composite/runtime/program/registry.h"
#include "composite/runtime/run/op_kernel.h"
#include "composite/runtime/tensorflow/shape_function.h"
#include "composite/runtime/tensorflow/xla_kernel.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::NodeDef;

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
  RegisterFunctionOpKernels();
  const tensorflow::OpDef* op_def = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUpOpDef(kFunctionOp, &op_def).ok()) return false;
  RegisterXlaKernels(*op_def, {"constants"});
  return true;
}();

}  // namespace

const char* VersionAttr(absl::string_view op_name) {
  return op_name == kFunctionOp ? kFunctionAttr : kProgramAttr;
}

absl::string_view VersionOf(const tensorflow::AttrValue* version_attr) {
  if (version_attr == nullptr) return "";
  return version_attr->has_func() ? version_attr->func().name() : version_attr->s();
}

absl::Status LearnFunction(const NodeDef& node, const FunctionLibraryDefinition& library) {
  if (node.op() != kFunctionOp) return absl::OkStatus();
  const std::string name(VersionOf(tensorflow::AttrSlice(node).Find(kFunctionAttr)));
  const tensorflow::FunctionDef* function = library.Find(name);
  if (function == nullptr || Registry::Global().Find(kFunctionOp, name).ok()) {
    return absl::OkStatus();
  }
  tensorflow::FunctionDefLibrary found;
  *found.add_function() = *function;
  const FunctionLibraryDefinition reachable = library.ReachableDefinitions(*function);
  for (const std::string& other : reachable.ListFunctionNames()) {
    if (other != name) *found.add_function() = *reachable.Find(other);
  }
  return Registry::Global().RegisterFunction(found);
}

absl::Status LearnFunctions(const tensorflow::Graph& graph,
                            const FunctionLibraryDefinition& library) {
  for (const tensorflow::Node* node : graph.op_nodes()) {
    TF_RETURN_IF_ERROR(LearnFunction(node->def(), library));
  }
  return absl::OkStatus();
}

absl::Status LearnFunctions(const tensorflow::FunctionDef& function,
                            const FunctionLibraryDefinition& library) {
  for (const NodeDef& node : function.node_def()) {
    TF_RETURN_IF_ERROR(LearnFunction(node, library));
  }
  return absl::OkStatus();
}

}  // namespace composite
