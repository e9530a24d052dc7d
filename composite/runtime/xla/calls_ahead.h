// Kernels for the calls that a compilation comes to later are asked for before it waits for the
// first one: several are made at the same time, and the waits are one.
#ifndef COMPOSITE_RUNTIME_XLA_CALLS_AHEAD_H_
#define COMPOSITE_RUNTIME_XLA_CALLS_AHEAD_H_

#include "composite/runtime/xla/compilation.h"
#include "tensorflow/compiler/tf2xla/xla_op_kernel.h"

namespace composite {

// Asks for the kernels of the calls in the function that is being compiled, and in those that it
// runs, as far as the shapes of their inputs follow from the function's arguments. Once a function
// and compilation.
void AskForCalls(tensorflow::XlaOpKernelContext* context, Compilation* compilation);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_CALLS_AHEAD_H_
