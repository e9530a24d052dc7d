// The TensorFlow kernel of every composite op: finds a compiled kernel that covers the call and
// calls it on TensorFlow's own buffers, or runs the expansion.
#ifndef COMPOSITE_RUNTIME_RUN_OP_KERNEL_H_
#define COMPOSITE_RUNTIME_RUN_OP_KERNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// Makes the kernel of an op known to TensorFlow, on CPU and on GPU devices (there it runs the
// expansion only, and a GPU user meets no placement error). The op itself must be registered.
absl::Status RegisterOpKernels(const std::string& op_name);

// Those of kFunctionOp, when this library is loaded. On GPU devices for dtypes other than int32,
// which TensorFlow keeps in host memory there.
void RegisterFunctionOpKernels();

// Has the composition run a TF op on the CPU wherever TensorFlow has no kernel for the node's
// dtypes. Where it has one, that is the one that runs.
void RegisterFallbackKernel(const std::string& tf_op, const std::string& composition);

// Makes kernels of the composite `op_name`, whatever op their nodes are of.
std::unique_ptr<tensorflow::kernel_factory::OpKernelFactory> NewOpKernelFactory(
    std::string op_name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_OP_KERNEL_H_
