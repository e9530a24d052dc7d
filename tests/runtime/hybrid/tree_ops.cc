// Ops of somebody else: one that follows the parents of beams, as GatherTree does, and a resource
// that is made of a file.
#include <fstream>
#include <sstream>
#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace {

REGISTER_OP("TestFollowParents")
    .Input("ids: int32")
    .Input("parents: int32")
    .Output("beams: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    });

class FollowParents : public OpKernel {
 public:
  explicit FollowParents(OpKernelConstruction* c) : OpKernel(c) {}
  void Compute(OpKernelContext* context) override {
    const Tensor &ids = context->input(0), &parents = context->input(1);
    OP_REQUIRES(context, ids.NumElements() == parents.NumElements(),
                absl::InvalidArgumentError("not one parent for each id"));
    Tensor* beams;
    OP_REQUIRES_OK(context, context->allocate_output(0, ids.shape(), &beams));
    for (int64_t i = 0; i < ids.NumElements(); ++i) {
      const int32_t parent = parents.flat<int32_t>()(i);
      OP_REQUIRES(context, 0 <= parent && parent < ids.NumElements(),
                  absl::InvalidArgumentError("a parent that is no beam"));
      beams->flat<int32_t>()(i) = ids.flat<int32_t>()(parent);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("TestFollowParents").Device(DEVICE_CPU), FollowParents);

}  // namespace
}  // namespace tensorflow
