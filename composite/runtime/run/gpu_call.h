// One call of a kernel on a GPU: outputs and workspaces from TensorFlow's allocator, launches on
// its stream. The host waits for nothing, and no memory of the device is read.
#ifndef COMPOSITE_RUNTIME_RUN_GPU_CALL_H_
#define COMPOSITE_RUNTIME_RUN_GPU_CALL_H_

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "composite/runtime/cuda/driver.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// Sets all outputs, which the stream will have filled when it comes to what follows: who is given
// one in the host's memory must wait for that (WhenStreamIsDone). `choice` must
// come from Choose with this context's signature, and have a kernel for the device. Empty when an
// input lies where the kernel cannot read it. A status that is not OK names the kernel, and no
// output is set.
absl::optional<absl::Status> CallGpuKernel(tensorflow::OpKernelContext* context,
                                           const Choice& choice, const CudaDevice& device);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_GPU_CALL_H_
