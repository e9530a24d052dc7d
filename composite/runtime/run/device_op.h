// The kernel of a composite node on a device that is no CPU. It has no kernels there: it runs the
// expansion, and waits for nobody.
#ifndef COMPOSITE_RUNTIME_RUN_DEVICE_OP_H_
#define COMPOSITE_RUNTIME_RUN_DEVICE_OP_H_

#include <string>

#include "absl/status/statusor.h"
#include "composite/runtime/instantiate/expansion_runner.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/run/composite_node.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

class DeviceOp : public tensorflow::AsyncOpKernel {
 public:
  // `op_name`: of the composite.
  DeviceOp(tensorflow::OpKernelConstruction* context, std::string op_name);

  void ComputeAsync(tensorflow::OpKernelContext* context, DoneCallback done) override;

 private:
  absl::StatusOr<ExpansionRunner::Ready> Prepare(tensorflow::OpKernelContext* context);

  CompositeNode node_;
  const Device device_;
  ExpansionRunner expansion_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_DEVICE_OP_H_
