#include "composite/runtime/foreign/tvm_module.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/checked_file.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

constexpr char kLoad[] = "ffi.Module.load_from_file.so";
constexpr char kCudaLoader[] = "ffi.Module.load_from_bytes.cuda";  // of CUDA's machine code

absl::Status At(const std::string& path, const absl::Status& status, absl::string_view what = "") {
  return absl::Status(status.code(), absl::StrCat(path, what, ": ", status.message()));
}

}  // namespace

absl::StatusOr<TvmLibrary> LoadTvmModule(const std::string& path, ElfImage& image,
                                         const tvm_ffi::Libraries& libraries) {
  absl::Status status = tvm_ffi::Load(libraries, /*with_runtime=*/true);
  if (!status.ok()) return At(path, status);
  // Whichever other libraries have the symbol.
  image.Bind(tvm_ffi::kRaiseParts, tvm_ffi::RaiseParts());
  TF_ASSIGN_OR_RETURN(CheckedFile copy, CheckedFile::InMemory(path, image.bytes()));
  const std::string mapped = copy.MapPath();
  const tvm_abi::Any arguments[] = {tvm_ffi::String(mapped.c_str()), tvm_ffi::String("so")};
  absl::StatusOr<tvm_ffi::Value> module = tvm_ffi::CallGlobal(kLoad, arguments);
  if (!module.ok() && absl::StrContains(module.status().message(), kCudaLoader)) {
    status = tvm_ffi::LoadCuda(libraries);
    if (!status.ok()) return At(path, status, " has functions for NVIDIA's GPUs");
    module = tvm_ffi::CallGlobal(kLoad, arguments);
  }
  if (!module.ok()) return module.status();
  std::shared_ptr<void> handle(dlopen(mapped.c_str(), RTLD_NOW | RTLD_NOLOAD), [](void* opened) {
    return opened != nullptr ? dlclose(opened) : 0;
  });
  if (handle == nullptr) return absl::InternalError(absl::StrCat(path, ": TVM did not map it"));
  return TvmLibrary{*std::move(module), std::move(handle)};
}

absl::StatusOr<tvm_ffi::Value> GetFunction(const tvm_ffi::Value& module, const std::string& name) {
  const tvm_abi::Any arguments[] = {module.any(), tvm_ffi::String(name.c_str()), tvm_ffi::Int(1)};
  return tvm_ffi::CallGlobal("ffi.ModuleGetFunction", arguments);
}

// As relax.VirtualMachine does it in Python.
absl::StatusOr<tvm_ffi::Value> StartMachine(const tvm_ffi::Value& module) {
  constexpr int kNaiveAllocator = 1;
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value load, GetFunction(module, "vm_load_executable"));
  if (load.type() != tvm_ffi::kFunction) return tvm_ffi::Value();
  TF_ASSIGN_OR_RETURN(tvm_ffi::Value machine, tvm_ffi::Call("vm_load_executable", load, {}));
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value start, GetFunction(machine, "vm_initialization"));
  const tvm_abi::Any arguments[] = {tvm_ffi::Int(tvm_abi::kCpu), tvm_ffi::Int(0),
                                    tvm_ffi::Int(kNaiveAllocator)};
  TF_RETURN_IF_ERROR(tvm_ffi::Call("vm_initialization", start, arguments).status());
  return machine;
}

}  // namespace composite
