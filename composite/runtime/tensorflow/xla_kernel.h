// Composites under XLA: in tf.function(jit_compile=True), in clusters that TensorFlow forms itself,
// on whichever devices XLA compiles for.
// A node is a call of a kernel there (composite/runtime/xla/), or its expansion.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_XLA_KERNEL_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_XLA_KERNEL_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

// Has XLA compile the nodes of an op, of all its versions; it needs the values of the constant
// inputs. TensorFlow must know the op: XLA ends the process over a kernel without one. Call it once
// for each op.
void RegisterXlaKernels(const tensorflow::OpDef& op_def,
                        const std::vector<std::string>& constant_inputs);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_XLA_KERNEL_H_
