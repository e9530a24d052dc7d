#include "composite/runtime/kernels/kernel_library.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/checked_file.h"

namespace composite {
namespace {

// The file, which belongs to whom its bytes may be trusted from.
absl::StatusOr<CheckedFile> Open(const std::string& path) {
  if (path.empty() || path[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat("_library: \"", path, "\" is not absolute"));
  }
  absl::StatusOr<CheckedFile> file = CheckedFile::Open(path);
  if (!file.ok()) return file.status();
  absl::Status status = file->CheckOwner();
  if (!status.ok()) return status;
  return file;
}

}  // namespace

void FillSlotsOf(void* library) {
  tvm_abi::Slots slots;
  slots.parallel_launch = static_cast<void**>(dlsym(library, tvm_abi::kParallelLaunch));
  slots.parallel_barrier = static_cast<void**>(dlsym(library, tvm_abi::kParallelBarrier));
  slots.alloc_workspace = static_cast<void**>(dlsym(library, tvm_abi::kAllocWorkspace));
  slots.free_workspace = static_cast<void**>(dlsym(library, tvm_abi::kFreeWorkspace));
  tvm_abi::FillSlots(slots);
}

absl::StatusOr<tvm_abi::Function> FindKernel(void* library, absl::string_view path,
                                             absl::string_view name) {
  void* function = dlsym(library, absl::StrCat(tvm_abi::kSymbolPrefix, name).c_str());
  if (function == nullptr) return absl::NotFoundError(absl::StrCat(path, " has no kernel ", name));
  return reinterpret_cast<tvm_abi::Function>(function);
}

absl::StatusOr<std::vector<tvm_abi::Function>> LoadKernel(const std::string& path,
                                                          const std::string& sha256,
                                                          absl::Span<const std::string> names,
                                                          KernelOrigin origin) {
  absl::StatusOr<CheckedFile> file =
      origin == KernelOrigin::kTrusted ? CheckedFile::Open(path) : Open(path);
  if (!file.ok()) return file.status();
  absl::Status status = file->MakeExecutable();
  if (status.ok()) status = file->CheckDigest(sha256);
  if (!status.ok()) return status;
  absl::StatusOr<void*> library = file->Map(kOpenFlags);
  if (!library.ok()) return library.status();
  FillSlotsOf(*library);
  std::vector<tvm_abi::Function> functions;
  for (const std::string& name : names) {
    absl::StatusOr<tvm_abi::Function> function = FindKernel(*library, path, name);
    if (!function.ok()) return function.status();
    functions.push_back(*function);
  }
  return functions;
}

absl::StatusOr<std::string> ReadKernel(const std::string& path, const std::string& sha256) {
  absl::StatusOr<CheckedFile> file = Open(path);
  if (!file.ok()) return file.status();
  absl::Status status = file->CheckDigest(sha256);
  if (!status.ok()) return status;
  return file->Read();
}

}  // namespace composite
