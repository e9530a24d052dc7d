// The kernels that code of XLA calls, by the handles that are in the code.
//
// A handle stands for the machine code of a kernel, which is never unloaded: any number of
// compilations adds one entry a kernel. XLA's code keeps the kernel that it was compiled with,
// whatever becomes of the op and of its kernels.
#ifndef COMPOSITE_RUNTIME_XLA_KERNEL_HANDLES_H_
#define COMPOSITE_RUNTIME_XLA_KERNEL_HANDLES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/kernels/kernel_group.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/request/kernel_shapes.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// A kernel for the shapes of one call. Immutable, and kept for ever.
struct XlaKernel {
  std::string handle;
  std::string name;
  std::string op;
  std::string strategy;
  tvm_abi::Function function = nullptr;
  size_t alignment = 1;  // see KernelRecord
  bool barriers = true;
  Signature in_shapes;
  std::vector<std::vector<int64_t>> out_shapes;
  std::vector<tvm_abi::DataType> dtypes;  // of inputs, then of outputs
};

// The entry of an installed kernel. InvalidArgument where it has symbols or packed arguments, or is
// none of a CPU's. `inputs`, `outputs`: the dtypes of the op.
absl::StatusOr<const XlaKernel*> KeepForXla(const InstalledKernel& kernel,
                                            tensorflow::DataTypeSlice inputs,
                                            tensorflow::DataTypeSlice outputs);

// Null for a handle that no kernel of this process has.
const XlaKernel* FindForXla(absl::string_view handle);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_KERNEL_HANDLES_H_
