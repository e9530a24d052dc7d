// What kernels run on: devices as values, and which kernels each of them can run.
#ifndef COMPOSITE_RUNTIME_KERNELS_MACHINE_H_
#define COMPOSITE_RUNTIME_KERNELS_MACHINE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/kernels/kernel_record.h"

namespace composite {

struct Device {
  enum Kind { kCpu, kOther };

  Kind kind = kCpu;
  int level = 0;  // of a CPU: 0 is x86-64, 4 is x86-64-v4-bf16, and -1 another architecture

  // Whether there are kernels for devices of this kind.
  bool has_kernels() const { return kind == kCpu; }
};

// The CPU of this process.
const Device& HostCpu();

// The device of a TensorFlow device type: "CPU", "GPU", ...; "" is the CPU.
Device DeviceOfType(absl::string_view type);

// FailedPrecondition when the device lacks what the kernel was compiled for, or the environment
// says to do without: COMPOSITE_ISA names the highest level whose kernels may run.
absl::Status CheckMachine(const KernelRecord& record, const Device& device);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_MACHINE_H_
