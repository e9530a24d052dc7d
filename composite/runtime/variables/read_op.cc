// CompositeReadVariable: what ReadVariableOp does, where a kernel may write over what was read (see
// contents.h).
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/variables/contents.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace composite {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::Var;

absl::Status ShapeOfVariable(tensorflow::shape_inference::InferenceContext* context) {
  const auto* held = context->input_handle_shapes_and_types(0);
  const bool is_known = held != nullptr && held->size() == 1;
  context->set_output(0, is_known ? held->front().shape : context->UnknownShape());
  return absl::OkStatus();
}

REGISTER_OP("CompositeReadVariable")
    .Input("resource: resource")
    .Output("value: dtype")
    .Attr("dtype: {half, bfloat16, float, double}")
    .SetIsStateful()
    .SetShapeFn(ShapeOfVariable)
    .Doc(R"doc(
Reads a variable that a CompositeUpdateVariable is to update.

resource: The variable.
value: What it holds. A node that makes the update's value of it may write over it, where nobody
  else has it.
)doc");

class ReadVariableOp : public tensorflow::OpKernel {
 public:
  explicit ReadVariableOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("dtype", &dtype_));
  }

  void Compute(OpKernelContext* context) override {
    const tensorflow::ResourceHandle& handle = HandleFromInput(context, 0);
    tensorflow::core::RefCountPtr<Var> variable;
    // The code is that of ReadVariableOp, whose place this takes.
    const absl::Status found = LookupResource(context, handle, &variable);
    OP_REQUIRES(context, found.ok(),
                absl::FailedPreconditionError(absl::StrCat("Could not find variable ",
                                                           handle.name(), ": ", found.message())));
    tensorflow::tf_shared_lock lock(*variable->mu());
    const Tensor& held = *variable->tensor();
    OP_REQUIRES(context, variable->is_initialized,
                absl::FailedPreconditionError(absl::StrCat("variable ", handle.name(),
                                                           " is read, and it is not initialized")));
    OP_REQUIRES(context, held.dtype() == dtype_,
                absl::InvalidArgumentError(absl::StrCat(
                    "variable ", handle.name(), " is read as ", tensorflow::DataTypeString(dtype_),
                    ", and it is of ", tensorflow::DataTypeString(held.dtype()))));
    if (!variable->copy_on_read_mode.load()) {
      context->set_output(0, ContentsOf(variable.get()));
      return;
    }
    Tensor* copy = nullptr;  // sparse updates write where it lies, whoever has it
    OP_REQUIRES_OK(context, context->allocate_output(0, held.shape(), &copy));
    std::memcpy(copy->data(), held.data(), held.TotalBytes());
  }

 private:
  tensorflow::DataType dtype_ = tensorflow::DT_INVALID;
};

REGISTER_KERNEL_BUILDER(Name("CompositeReadVariable").Device(tensorflow::DEVICE_CPU),
                        ReadVariableOp);

}  // namespace
}  // namespace composite
