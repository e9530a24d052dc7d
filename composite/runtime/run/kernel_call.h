// One call of a compiled kernel with the inputs of an OpKernelContext: zero-copy inputs, outputs
// and workspace from TensorFlow's allocator, parallel loops on its intra-op threads.
#ifndef COMPOSITE_RUNTIME_RUN_KERNEL_CALL_H_
#define COMPOSITE_RUNTIME_RUN_KERNEL_CALL_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// The shapes of the inputs.
Signature SignatureOf(tensorflow::OpKernelContext* context);

// Sets all outputs. `choice` must come from Choose with this context's signature, and have a
// kernel; `packed` are its packed arguments. When the kernel raises, no output is set: OutOfRange
// for its IndexError (an index that the expansion will refuse), InvalidArgument for TypeError and
// ValueError, otherwise Internal, with its message.
absl::Status CallKernel(tensorflow::OpKernelContext* context, const Signature& call,
                        const Choice& choice, absl::Span<const tensorflow::Tensor> packed);

// Makes packed argument i of a kernel. The status is as that of CallKernel.
absl::Status CallPacker(tensorflow::OpKernelContext* context, const InstalledKernel& kernel,
                        size_t i, tensorflow::Tensor* packed);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_KERNEL_CALL_H_
