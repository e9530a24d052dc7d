// What code of XLA calls for a kernel: a typed FFI handler, on the CPU.
//
// A handler for GPUs would be registered under the same name for "CUDA", and take its stream and
// its scratch memory from XLA in place of the pool.
#ifndef COMPOSITE_RUNTIME_XLA_KERNEL_HANDLER_H_
#define COMPOSITE_RUNTIME_XLA_KERNEL_HANDLER_H_

namespace composite {

// The name of the custom call, and its attributes: the handle of the kernel, and whether
// composite.stats() counts the calls.
constexpr char kXlaKernelTarget[] = "composite_kernel";
constexpr char kXlaHandle[] = "kernel";
constexpr char kXlaCounted[] = "counted";

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_KERNEL_HANDLER_H_
