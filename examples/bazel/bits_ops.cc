// An op that is written in C++, for bodies to call.
#include <cstdint>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace {

REGISTER_OP("CountBits")
    .Input("x: int32")
    .Output("bits: int32")
    .SetShapeFn(tensorflow::shape_inference::UnchangedShape);

class CountBits : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(tensorflow::OpKernelContext* context) override {
    const tensorflow::Tensor& x = context->input(0);
    tensorflow::Tensor* bits = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &bits));
    const auto from = x.flat<int32_t>();
    auto to = bits->flat<int32_t>();
    for (int64_t i = 0; i < from.size(); ++i) to(i) = __builtin_popcount(from(i));
  }
};

REGISTER_KERNEL_BUILDER(Name("CountBits").Device(tensorflow::DEVICE_CPU), CountBits);

}  // namespace
