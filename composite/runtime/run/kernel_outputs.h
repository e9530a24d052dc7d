// The outputs of a call that a kernel computes.
#ifndef COMPOSITE_RUNTIME_RUN_KERNEL_OUTPUTS_H_
#define COMPOSITE_RUNTIME_RUN_KERNEL_OUTPUTS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "composite/runtime/kernels/kernel_record.h"
#include "composite/runtime/variables/contents.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace composite {

// What the sizes of a call say of its outputs.
struct OutputShapes {
  absl::InlinedVector<tensorflow::TensorShape, 1> shapes;
  absl::InlinedVector<absl::InlinedVector<int64_t, 4>, 1> dims;  // as kernels take them
  bool all_empty = false;  // there are some, and there is nothing to compute
};

// `values`: of the symbols of the kernel's class.
absl::Status ShapesOfOutputs(const KernelRecord& record, const SymbolValues& values,
                             OutputShapes* outputs);

// The outputs of a node that are what variables are to hold, see kUpdatesAttr.
using Updates = absl::Span<const Forward>;

// Takes all outputs from the device's allocator, or an input's memory for those that may lie there:
// a variable's for `updates`, which are written as long as `written` lives.
absl::Status AllocateOutputs(tensorflow::OpKernelContext* context, const KernelRecord& record,
                             const OutputShapes& outputs, Updates updates,
                             WrittenVariables* written);

// Lets go of what was allocated: an expansion that runs instead sets outputs of its own.
void ReleaseOutputs(tensorflow::OpKernelContext* context);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_KERNEL_OUTPUTS_H_
