// What kernels run on: devices as values, and which kernels each of them can run.
#ifndef COMPOSITE_RUNTIME_KERNELS_MACHINE_H_
#define COMPOSITE_RUNTIME_KERNELS_MACHINE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/kernels/kernel_record.h"

namespace composite {

// The name of all devices that are portable.
inline constexpr char kAllPortable[] = "cuda:compute";

struct Device {
  // kXlaCpu is the CPU to code that XLA compiles: the same kernels run there, and they are measured
  // against other code.
  enum Kind { kCpu, kCuda, kXlaCpu, kOther };

  Kind kind = kCpu;
  // Of a CPU: 0 is x86-64, 4 is x86-64-v4-bf16, and -1 another architecture. Of a GPU of NVIDIA's:
  // ten times the major number of its compute capability, and the minor one.
  int level = 0;
  // Of no GPU but of code, PTX: that it runs on GPUs of this level and of all later ones.
  bool is_portable = false;

  // Whether there are kernels for devices of this kind.
  bool has_kernels() const { return kind != kOther; }
  // By which its kernels are told from those of other devices: "" is the CPU, "cuda:sm_80" a GPU,
  // "cuda:compute" what is portable, "xla:cpu" the CPU inside XLA.
  std::string name() const;
};

// The CPU of this process.
const Device& HostCpu();
// The same to code that XLA compiles.
const Device& XlaCpu();

// The device that a record names: "CPU", "xla:cpu", "cuda:sm_80", or "cuda:compute_80", which is
// portable; "" is the CPU. FailedPrecondition when no
// process has kernels for such devices.
absl::StatusOr<Device> DeviceOfRecord(absl::string_view name);

// FailedPrecondition when this CPU lacks what the kernel was compiled for, or the environment says
// to do without: COMPOSITE_ISA names the highest level whose kernels may run. Kernels for GPUs are
// told apart by the devices of nodes.
absl::Status CheckMachine(const KernelRecord& record);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_MACHINE_H_
