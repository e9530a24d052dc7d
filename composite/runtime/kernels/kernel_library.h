// Opens the file of a just-in-time kernel. Nothing of a file is mapped before its owner, its
// permissions and its digest are checked: a truncated library kills the process otherwise.
#ifndef COMPOSITE_RUNTIME_KERNELS_KERNEL_LIBRARY_H_
#define COMPOSITE_RUNTIME_KERNELS_KERNEL_LIBRARY_H_

#include <dlfcn.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "composite/runtime/launch/tvm_abi.h"

namespace composite {

// How libraries of kernels are opened. DEEPBIND: the imports of a kernel are found in our library,
// which it names as needed, and not in a TVM that the same process may have loaded.
inline constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;

// Gives an open library, which dlopen returned, this process's host functions. Before any of its
// kernels is called.
void FillSlotsOf(void* library);

// The function of this name in an open library. NotFound, with `path`, when there is none.
absl::StatusOr<tvm_abi::Function> FindKernel(void* library, absl::string_view path,
                                             absl::string_view name);

// Who answers for the bytes of a file.
enum class KernelOrigin : signed char {
  kOwn,      // this user or root, who alone can have written them: this is checked
  kTrusted,  // whoever asked for the file to be loaded, and so trusts where it comes from
};

// The functions of these names, kernels and what packs for them, in the library at the absolute
// path `path`, whose bytes have the SHA-256 `sha256` (hex); "/proc/self/fd/<number>" is a library
// in memory, and one in a folder that nothing may be run from is copied to memory. It stays open
// for ever. Every failure is a status that says which file and why: NotFound, PermissionDenied,
// DataLoss (other bytes than promised), FailedPrecondition.
absl::StatusOr<std::vector<tvm_abi::Function>> LoadKernel(const std::string& path,
                                                          const std::string& sha256,
                                                          absl::Span<const std::string> names,
                                                          KernelOrigin origin = KernelOrigin::kOwn);

// The bytes of the file at an absolute path, checked as by LoadKernel: machine code for a GPU.
absl::StatusOr<std::string> ReadKernel(const std::string& path, const std::string& sha256);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_KERNEL_LIBRARY_H_
