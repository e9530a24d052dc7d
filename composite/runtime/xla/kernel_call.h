// A call of a kernel in the place of a node that XLA compiles.
#ifndef COMPOSITE_RUNTIME_XLA_KERNEL_CALL_H_
#define COMPOSITE_RUNTIME_XLA_KERNEL_CALL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/xla/kernel_choice.h"
#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"

namespace composite {

// Why what is compiled can call no kernels of this process; empty if it can. They run on the CPU
// and nowhere else, and what is compiled must run in this process: neither exported, ahead of time
// or as text, nor kept for another one.
std::string WhyNoKernelCalls(const tensorflow::XlaOpKernelContext& context);

// The signature of a call whose inputs have these shapes and, where they are known, these values;
// false where an input has no shape that is known, or is empty.
bool SignatureOf(absl::Span<const InputFact> facts,
                 absl::Span<const tensorflow::Tensor* const> values, Signature* call);

// The same with the values that XLA knows.
bool SignatureForXla(tensorflow::XlaOpKernelContext* context, absl::Span<const InputFact> facts,
                     Signature* call);

// Has the outputs of the node be those of a call of the kernel.
absl::Status CallKernelInXla(tensorflow::XlaOpKernelContext* context, const InstalledKernel& kernel,
                             bool counted);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_KERNEL_CALL_H_
