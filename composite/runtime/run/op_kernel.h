// The TensorFlow kernel of every composite op: finds a compiled kernel that covers the call and
// calls it on TensorFlow's own buffers, or runs the expansion.
#ifndef COMPOSITE_RUNTIME_RUN_OP_KERNEL_H_
#define COMPOSITE_RUNTIME_RUN_OP_KERNEL_H_

#include <memory>
#include <string>

#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// Makes kernels of the composite `op_name`, whatever op their nodes are of.
std::unique_ptr<tensorflow::kernel_factory::OpKernelFactory> NewOpKernelFactory(
    std::string op_name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_OP_KERNEL_H_
