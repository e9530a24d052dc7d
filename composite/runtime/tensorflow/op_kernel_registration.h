// Makes the kernels of ops known to TensorFlow, at run time.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_OP_KERNEL_REGISTRATION_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_OP_KERNEL_REGISTRATION_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

// Makes the kernel of an op known to TensorFlow, on CPU and on GPU devices (there it runs the
// expansion only, and a GPU user meets no placement error). The op itself must be registered.
absl::Status RegisterOpKernels(const std::string& op_name);

// Those of kFunctionOp, when this library is loaded.
void RegisterFunctionOpKernels(const tensorflow::OpDef& op);

// Has the composition run a TF op on the CPU wherever TensorFlow has no kernel for the node's
// dtypes. Where it has one, that is the one that runs.
void RegisterFallbackKernel(const std::string& tf_op, const std::string& composition);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_OP_KERNEL_REGISTRATION_H_
