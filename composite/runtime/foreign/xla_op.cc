// The ops that call foreign functions, to XLA: a custom call on the CPU where the node says so, and
// else an error. Without a kernel TensorFlow would say that none is registered, and not of what.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/foreign/library.h"
#include "composite/runtime/foreign/shape_rules.h"
#include "composite/runtime/foreign/xla_call.h"
#include "composite/runtime/xla/custom_call.h"
#include "tensorflow/compiler/tf2xla/shape_util.h"
#include "tensorflow/compiler/tf2xla/xla_compiler.h"
#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "xla/hlo/builder/xla_builder.h"
#include "xla/shape_util.h"

namespace composite {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::TensorShape;
using tensorflow::XlaOpKernelContext;

// What a node has beside the op's own attributes, where XLA may call the function.
constexpr char kXlaAttr[] = "_composite_xla";
constexpr char kCustomCall[] = "custom_call";

class ForeignXlaOp : public tensorflow::XlaOpKernel {
 public:
  explicit ForeignXlaOp(OpKernelConstruction* context) : XlaOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("function", &function_));
    const tensorflow::AttrSlice attrs(context->def());
    const tensorflow::AttrValue* stamp = attrs.Find(kXlaAttr);
    custom_call_ = stamp != nullptr && stamp->s() == kCustomCall;
    const tensorflow::AttrValue* device = attrs.Find(kTvmDeviceAttr);
    if (device != nullptr) tvm_device_ = device->s();
    const size_t colon = function_.find(':');
    library_ = function_.substr(0, colon);
    name_ = function_.substr(colon == std::string::npos ? 0 : colon + 1);
    OP_REQUIRES_OK(context, Named(rules_.Read(attrs)));
    const tensorflow::OpDef* op = nullptr;
    OP_REQUIRES_OK(context,
                   tensorflow::OpRegistry::Global()->LookUpOpDef(context->def().op(), &op));
    has_effects_ = op->is_stateful();
  }

  void Compile(XlaOpKernelContext* context) override {
    absl::Status status = CompileCall(context);
    if (!status.ok()) context->CtxFailure(status);
  }

 private:
  absl::Status Named(const absl::Status& status) const {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("function ", name_, ": ", status.message()));
  }

  absl::Status CompileCall(XlaOpKernelContext* context) const {
    // Unimplemented: where TensorFlow chose itself to compile a part of a graph, it then runs it.
    if (!custom_call_) {
      return absl::UnimplementedError(absl::StrCat(
          name_,
          " is a function of a library (composite.tf_op), which XLA cannot compile: call it "
          "outside of the function with jit_compile=True, compile without XLA, or make it with "
          "xla=\"custom_call\", by which code for the CPU calls it"));
    }
    if (!tvm_device_.empty()) {
      return Named(absl::UnimplementedError(
          absl::StrCat("code of XLA calls functions on the CPU alone, not on ", tvm_device_)));
    }
    if (context->compiler()->options().device_type != tensorflow::DEVICE_CPU_XLA_JIT) {
      return absl::UnimplementedError(absl::StrCat(
          name_, " is a function of a library, which code of XLA calls on the CPU alone, not on ",
          context->compiler()->options().device_type.type_string()));
    }
    TF_ASSIGN_OR_RETURN(auto library, FindForeignLibrary(library_));
    TF_RETURN_IF_ERROR(library->Find(name_).status());
    CustomCall call;
    call.target = kXlaTarget;
    call.has_effects = has_effects_;
    for (int i = 0; i < rules_.inputs; ++i) {
      TF_ASSIGN_OR_RETURN(xla::Shape shape, context->InputXlaShape(i));
      if (!shape.IsArray() || shape.is_dynamic()) {
        return Named(absl::UnimplementedError(absl::StrCat(
            "input ", i, " is ", xla::ShapeUtil::HumanString(shape),
            " to XLA: a custom call takes tensors of sizes that are known while it compiles")));
      }
      call.operands.push_back(context->Input(i));
      call.operand_shapes.push_back(std::move(shape));
    }
    int given = rules_.inputs;
    for (int i = 0; i < context->num_outputs(); ++i) {
      TF_ASSIGN_OR_RETURN(TensorShape shape, OutputShape(context, i, &given));
      xla::Shape made;
      TF_RETURN_IF_ERROR(
          tensorflow::TensorShapeToXLAShape(context->expected_output_dtype(i), shape, &made));
      call.output_shapes.push_back(std::move(made));
    }
    call.attrs = absl::StrCat("{", kXlaFunction, " = ", QuotedForXla(function_), ", ", kXlaReturns,
                              " = ", rules_.returns ? "true" : "false", "}");
    const std::vector<xla::XlaOp> results = AddCustomCall(context->builder(), call);
    for (int i = 0; i < context->num_outputs(); ++i) context->SetOutput(i, results[i]);
    return context->builder()->first_error();
  }

  absl::StatusOr<TensorShape> OutputShape(XlaOpKernelContext* context, int output,
                                          int* given) const {
    const int source = rules_.shape_of[output];
    TensorShape shape;
    if (source >= 0) {
      TF_ASSIGN_OR_RETURN(xla::Shape of_input, context->InputXlaShape(source));
      TF_RETURN_IF_ERROR(tensorflow::XLAShapeToTensorShape(of_input, &shape));
      return shape;
    }
    const bool is_known = source == kStated
                              ? rules_.shapes[output].AsTensorShape(&shape)
                              : context->ConstantInputAsShape((*given)++, &shape).ok();
    if (is_known) return shape;
    return Named(absl::UnimplementedError(absl::StrCat(
        "the shape of output ", output,
        " is not known while XLA compiles: give output_shape by sizes that are, same_as, or a "
        "rule on the shapes of the inputs")));
  }

  std::string function_, library_, name_, tvm_device_;
  bool custom_call_ = false;
  bool has_effects_ = false;
  ShapeRules rules_;
};

REGISTER_XLA_OP(Name("CompositeTvmCall"), ForeignXlaOp);
REGISTER_XLA_OP(Name("CompositeStatefulTvmCall"), ForeignXlaOp);
REGISTER_XLA_OP(Name("CompositeGpuTvmCall").CompileTimeConstantInput("given"), ForeignXlaOp);
REGISTER_XLA_OP(Name("CompositeStatefulGpuTvmCall").CompileTimeConstantInput("given"),
                ForeignXlaOp);

}  // namespace
}  // namespace composite
