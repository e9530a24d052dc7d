// CompositeUpdateVariable: what AssignAddVariableOp and AssignSubVariableOp do, of a sum that a
// kernel has computed (see updates.h).
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/memory/tensor_identity.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace composite {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::Var;

REGISTER_OP("CompositeUpdateVariable")
    .Input("resource: resource")
    .Input("before: dtype")
    .Input("after: dtype")
    .Attr("dtype: {half, bfloat16, float, double}")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Adds `after - before` to a variable.

resource: The variable.
before: What was read of it.
after: What it is to hold if it still holds `before`, whose buffer it then takes the place of, unless
  it lies there already. What others have added in between stays.
)doc");

template <typename T>
class UpdateVariableOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    tensorflow::core::RefCountPtr<Var> variable;
    OP_REQUIRES_OK(context, LookupResource(context, HandleFromInput(context, 0), &variable));
    const Tensor &before = context->input(1), &after = context->input(2);
    tensorflow::mutex_lock lock(*variable->mu());
    Tensor* held = variable->tensor();
    OP_REQUIRES(context, variable->is_initialized,
                absl::FailedPreconditionError("a variable that is updated is not initialized"));
    OP_REQUIRES(context, held->shape() == after.shape() && before.shape() == after.shape(),
                absl::InvalidArgumentError(
                    absl::StrCat("Cannot update variable with shape ", held->shape().DebugString(),
                                 " using a Tensor with shape ", after.shape().DebugString(),
                                 ", shapes must be equal.")));
    if (IsSameMemory(*held, after)) return;  // a kernel has written where it lies
    // Nobody writes to a buffer that `before` owns, too. Where the variable holds another one, it
    // was written to, or sparse updates have it hand out copies.
    if (IsSameMemory(*held, before)) {
      *held = after;
      return;
    }
    Tensor sum;
    OP_REQUIRES_OK(context, context->allocate_temp(held->dtype(), held->shape(), &sum));
    sum.flat<T>() = held->flat<T>() + (after.flat<T>() - before.flat<T>());
    *held = std::move(sum);
  }
};

#define REGISTER(T)                                                                              \
  REGISTER_KERNEL_BUILDER(                                                                       \
      Name("CompositeUpdateVariable").Device(tensorflow::DEVICE_CPU).TypeConstraint<T>("dtype"), \
      UpdateVariableOp<T>);
TF_CALL_half(REGISTER) TF_CALL_bfloat16(REGISTER) TF_CALL_float(REGISTER) TF_CALL_double(REGISTER)
#undef REGISTER

}  // namespace
}  // namespace composite
