// Modules of TVM's runtime: libraries that TVM exported, and virtual machines for programs in them.
#ifndef COMPOSITE_RUNTIME_FOREIGN_TVM_MODULE_H_
#define COMPOSITE_RUNTIME_FOREIGN_TVM_MODULE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "composite/runtime/foreign/elf_image.h"
#include "composite/runtime/foreign/tvm_ffi.h"

namespace composite {

// A library as TVM has it, and as dlopen does. It stays mapped as long as somebody has either.
struct TvmLibrary {
  tvm_ffi::Value module;
  std::shared_ptr<void> handle;
};

// Maps TVM's libraries, and then a copy in memory of the library that was read from `path`. The
// image is of no use afterwards.
absl::StatusOr<TvmLibrary> LoadTvmModule(const std::string& path, ElfImage& image,
                                         const tvm_ffi::Libraries& libraries);

// A function of a module; none where it has none of that name.
absl::StatusOr<tvm_ffi::Value> GetFunction(const tvm_ffi::Value& module, const std::string& name);

// A virtual machine for the program of Relax that a module has; none where it has none. It takes
// memory from the C++ heap and gives it back, since a pool of TVM's keeps a block of each size.
absl::StatusOr<tvm_ffi::Value> StartMachine(const tvm_ffi::Value& module);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_TVM_MODULE_H_
