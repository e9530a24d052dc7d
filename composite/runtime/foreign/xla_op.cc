// What XLA is told of the ops that call foreign functions: that it cannot compile them, in words of
// this library. Without a kernel TensorFlow would say that none is registered, and not of what.
#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"
#include "tensorflow/compiler/tf2xla/xla_op_registry.h"

namespace composite {
namespace {

class ForeignXlaOp : public tensorflow::XlaOpKernel {
 public:
  explicit ForeignXlaOp(tensorflow::OpKernelConstruction* context) : XlaOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("function", &function_));
  }

  // Unimplemented: where TensorFlow chose itself to compile a part of a graph, it then runs it.
  void Compile(tensorflow::XlaOpKernelContext* context) override {
    const size_t colon = function_.find(':');
    const std::string name = function_.substr(colon == std::string::npos ? 0 : colon + 1);
    context->CtxFailure(absl::UnimplementedError(absl::StrCat(
        name,
        " is a function of a library (composite.tf_op), which XLA cannot compile: call it "
        "outside of the function with jit_compile=True, or compile without XLA")));
  }

 private:
  std::string function_;
};

REGISTER_XLA_OP(Name("CompositeTvmCall"), ForeignXlaOp);
REGISTER_XLA_OP(Name("CompositeStatefulTvmCall"), ForeignXlaOp);
REGISTER_XLA_OP(Name("CompositeGpuTvmCall").CompileTimeConstantInput("given"), ForeignXlaOp);
REGISTER_XLA_OP(Name("CompositeStatefulGpuTvmCall").CompileTimeConstantInput("given"),
                ForeignXlaOp);

}  // namespace
}  // namespace composite
