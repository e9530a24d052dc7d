// The kernel of a composite node on a device that is no CPU. It gives a kernel for the device to
// the device's stream, or runs the expansion, and waits for neither.
#ifndef COMPOSITE_RUNTIME_RUN_DEVICE_OP_H_
#define COMPOSITE_RUNTIME_RUN_DEVICE_OP_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "composite/runtime/cuda/driver.h"
#include "composite/runtime/instantiate/expansion_runner.h"
#include "composite/runtime/run/composite_node.h"
#include "composite/runtime/run/node_call.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

class DeviceOp : public tensorflow::AsyncOpKernel {
 public:
  // `op_name`: of the composite.
  DeviceOp(tensorflow::OpKernelConstruction* context, std::string op_name);

  void ComputeAsync(tensorflow::OpKernelContext* context, DoneCallback done) override;

 private:
  // What became of a call so far.
  struct Started {
    ExpansionRunner::Ready expansion;  // is to run; null: a kernel was launched
    bool strict = false;               // and how it runs
    AskedKernels asked;
  };

  absl::StatusOr<Started> Start(tensorflow::OpKernelContext* context);
  // Empty when the kernel cannot be used in this call, or could not be launched and is no must.
  absl::optional<absl::Status> Launch(tensorflow::OpKernelContext* context, const NodeCall& call,
                                      const Decision& decision);

  const bool has_host_outputs_;  // which are there when the stream has done all
  CompositeNode node_;
  CudaDevice gpu_;  // if kernels run on it
  ExpansionRunner expansion_;
  std::atomic<bool> told_{false};  // that a kernel could not be launched
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_DEVICE_OP_H_
