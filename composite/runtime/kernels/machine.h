// Which kernels this machine can run: levels of the x86-64 psABI.
#ifndef COMPOSITE_RUNTIME_KERNELS_MACHINE_H_
#define COMPOSITE_RUNTIME_KERNELS_MACHINE_H_

#include "absl/status/status.h"
#include "composite/runtime/kernels/kernel_record.h"

namespace composite {

// FailedPrecondition when this machine lacks what the kernel was compiled for, or the environment
// says to do without: COMPOSITE_ISA names the highest level whose kernels may run.
absl::Status CheckMachine(const KernelRecord& record);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_MACHINE_H_
