// Composites under XLA: in tf.function(jit_compile=True), in clusters that TensorFlow forms itself,
// on whichever devices XLA compiles for.
//
// Not for: kernels of ours inside of what XLA compiles. A node is its expansion there.
#ifndef COMPOSITE_RUNTIME_XLA_KERNEL_H_
#define COMPOSITE_RUNTIME_XLA_KERNEL_H_

#include "composite/runtime/program.h"

namespace composite {

// Has XLA compile the nodes of an op, of this version of it and of those to come. TensorFlow must
// know the op: XLA ends the process over a kernel without one. Call it once for each op.
void RegisterXlaKernels(const Program& program);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_KERNEL_H_
