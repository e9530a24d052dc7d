// One call of a compiled kernel with the inputs of an OpKernelContext: zero-copy inputs, outputs
// and workspace from TensorFlow's allocator, parallel loops on its intra-op threads.
#ifndef COMPOSITE_RUNTIME_RUN_KERNEL_CALL_H_
#define COMPOSITE_RUNTIME_RUN_KERNEL_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/run/kernel_outputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// "kernel <kernel> raised <kind>: <message>". OutOfRange for a kernel's IndexError (an index that
// the expansion will refuse), InvalidArgument for TypeError and ValueError, otherwise Internal.
absl::Status KernelError(absl::string_view kernel, const tvm_abi::Error& error);

// Sets all outputs. `call` is this context's signature, and the kernel covers it; `outputs` are the
// shapes that follow, `packed` its packed arguments. When the kernel raises, no output is set and
// the status is that of KernelError; DataLoss where it may have written to a variable: not for
// an index out of range, which it finds before.
absl::Status CallKernel(tensorflow::OpKernelContext* context, const Signature& call,
                        const InstalledKernel& kernel, const OutputShapes& outputs,
                        absl::Span<const tensorflow::Tensor> packed, Updates updates);

// Makes packed argument i of a kernel. The status is as that of CallKernel.
absl::Status CallPacker(tensorflow::OpKernelContext* context, const InstalledKernel& kernel,
                        size_t i, tensorflow::Tensor* packed);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_KERNEL_CALL_H_
