// The outputs of a call that a kernel computes.
#ifndef COMPOSITE_RUNTIME_RUN_KERNEL_OUTPUTS_H_
#define COMPOSITE_RUNTIME_RUN_KERNEL_OUTPUTS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "composite/runtime/kernels/kernel_record.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

using DimsOfOutputs = absl::InlinedVector<absl::InlinedVector<int64_t, 8>, 2>;

// Takes all outputs from the device's allocator, or an input's memory for those that may lie there.
// `all_empty`: there is nothing to compute.
absl::Status AllocateOutputs(tensorflow::OpKernelContext* context, const KernelRecord& record,
                             const SymbolValues& values, DimsOfOutputs* dims, bool* all_empty);

// Lets go of what was allocated: an expansion that runs instead sets outputs of its own.
void ReleaseOutputs(tensorflow::OpKernelContext* context);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_KERNEL_OUTPUTS_H_
