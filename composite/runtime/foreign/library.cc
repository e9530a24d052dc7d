#include "composite/runtime/foreign/library.h"

#include <algorithm>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "composite/runtime/base/checked_file.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/sha256.h"
#include "composite/runtime/foreign/elf_image.h"
#include "composite/runtime/foreign/tvm_module.h"
#include "composite/runtime/kernels/kernel_library.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

// TVM_FFI's names for what a library has beside its functions.
constexpr char kBinary[] = "__tvm_ffi__library_bin";   // other modules, such as a program
constexpr char kContext[] = "__tvm_ffi__library_ctx";  // by which code finds functions of those
constexpr char kSlotPrefix[] = "__TVM";                // functions of a runtime, as pointers
constexpr char kImportPrefix[] = "TVM";                // and as undefined symbols

// Whether this runtime has everything that the functions of a library ask of theirs.
bool HasKernelsAlone(const ElfImage& image) {
  for (const std::string& name : image.DefinedWith(kSlotPrefix)) {
    const std::string slot = absl::StrCat(kSlotPrefix, name);
    if (slot != tvm_abi::kParallelLaunch && slot != tvm_abi::kParallelBarrier &&
        slot != tvm_abi::kAllocWorkspace && slot != tvm_abi::kFreeWorkspace) {
      return false;
    }
  }
  for (const std::string& name : image.UndefinedWith(kImportPrefix)) {
    if (absl::StrCat(kImportPrefix, name) != tvm_ffi::kRaiseParts) return false;
  }
  for (const std::string& library : image.needed()) {
    if (absl::StartsWith(library, "libtvm")) return false;
  }
  return !image.Defines(kBinary) && !image.Defines(kContext);
}

std::vector<std::string> FunctionNames(const ElfImage& image) {
  std::vector<std::string> names = image.DefinedWith(tvm_abi::kSymbolPrefix);
  const auto is_no_function = [](const std::string& name) {
    return name.empty() || name[0] == '_';
  };
  names.erase(std::remove_if(names.begin(), names.end(), is_no_function), names.end());
  return names;
}

absl::Status NoFunction(const std::string& path, const std::string& name,
                        const std::vector<std::string>& names) {
  return absl::NotFoundError(
      absl::StrCat(path, " has no function ", name,
                   names.empty() ? "" : absl::StrCat("; it has ", absl::StrJoin(names, ", "))));
}

class KernelLibrary : public ForeignLibrary {
 public:
  KernelLibrary(std::string path, void* handle, std::vector<std::string> names)
      : path_(std::move(path)), handle_(handle), names_(std::move(names)) {}

  absl::StatusOr<Found> Find(const std::string& name) override {
    absl::StatusOr<tvm_abi::Function> function = FindKernel(handle_, path_, name);
    if (!function.ok()) return NoFunction(path_, name, names_);
    return Found{std::make_shared<KernelFunction>(absl::StrCat(name, " of ", path_), *function)};
  }
  const std::vector<std::string>& names() const override { return names_; }

 private:
  const std::string path_;
  void* const handle_;
  const std::vector<std::string> names_;
};

// A module of TVM's runtime, and where that is a program of Relax, a virtual machine for it.
class ModuleLibrary : public ForeignLibrary {
 public:
  static absl::StatusOr<std::shared_ptr<ForeignLibrary>> Of(std::string path, tvm_ffi::Value module,
                                                            std::vector<std::string> names,
                                                            bool serial, bool returns) {
    auto library = std::make_shared<ModuleLibrary>(std::move(path), std::move(module),
                                                   std::move(names), serial, returns);
    TF_ASSIGN_OR_RETURN(library->machine_, StartMachine(library->module_));
    return std::shared_ptr<ForeignLibrary>(std::move(library));
  }

  ModuleLibrary(std::string path, tvm_ffi::Value module, std::vector<std::string> names,
                bool serial, bool returns)
      : path_(std::move(path)),
        module_(std::move(module)),
        names_(std::move(names)),
        serial_(serial ? std::make_shared<std::recursive_mutex>() : nullptr),
        returns_(returns) {}

  absl::StatusOr<Found> Find(const std::string& name) override {
    const std::string label = absl::StrCat(name, " of ", path_);
    if (machine_.type() == tvm_ffi::kModule) {
      TF_ASSIGN_OR_RETURN(tvm_ffi::Value function, GetFunction(machine_, name));
      if (function.type() == tvm_ffi::kFunction) {
        return Found{std::make_shared<ObjectFunction>(label, std::move(function), machine_serial_),
                     true};
      }
    }
    TF_ASSIGN_OR_RETURN(tvm_ffi::Value function, GetFunction(module_, name));
    if (function.type() != tvm_ffi::kFunction) return NoFunction(path_, name, names_);
    return Found{std::make_shared<ObjectFunction>(label, std::move(function), serial_), returns_};
  }
  const std::vector<std::string>& names() const override { return names_; }

 private:
  const std::string path_;
  const tvm_ffi::Value module_;
  const std::vector<std::string> names_;
  const std::shared_ptr<std::recursive_mutex> serial_;
  const bool returns_;
  tvm_ffi::Value machine_;  // none: the module is no program
  const std::shared_ptr<std::recursive_mutex> machine_serial_ =
      std::make_shared<std::recursive_mutex>();
};

// One function, by whatever name.
class SingleFunction : public ForeignLibrary {
 public:
  SingleFunction(tvm_ffi::Value function, bool serial, bool returns)
      : function_(std::move(function)),
        serial_(serial ? std::make_shared<std::recursive_mutex>() : nullptr),
        returns_(returns) {}

  absl::StatusOr<Found> Find(const std::string& name) override {
    tvm_ffi::Value function = tvm_ffi::Value::Shared(function_.any().v_ptr);
    return Found{std::make_shared<ObjectFunction>(name, std::move(function), serial_), returns_};
  }
  const std::vector<std::string>& names() const override { return names_; }

 private:
  const tvm_ffi::Value function_;
  const std::vector<std::string> names_;
  const std::shared_ptr<std::recursive_mutex> serial_;
  const bool returns_;
};

// Those of this process. The lock is held while one is loaded, so that none is loaded twice.
struct Table {
  ForkMutex mu;
  std::map<std::string, std::shared_ptr<ForeignLibrary>> libraries ABSL_GUARDED_BY(mu);
  std::map<const void*, std::string> objects ABSL_GUARDED_BY(mu);
};

Table& Libraries() {
  static auto* const table = new Table;
  return *table;
}

absl::StatusOr<std::shared_ptr<ForeignLibrary>> OpenKernels(const std::string& path,
                                                            ElfImage image) {
  // To this runtime's own, whichever other libraries of the process have the symbol.
  image.Bind(tvm_ffi::kRaiseParts, reinterpret_cast<const void*>(&tvm_abi::RaiseParts));
  TF_ASSIGN_OR_RETURN(CheckedFile copy, CheckedFile::InMemory(path, image.bytes()));
  TF_ASSIGN_OR_RETURN(void* handle, copy.Map(kOpenFlags));
  FillSlotsOf(handle);
  return std::shared_ptr<ForeignLibrary>(
      std::make_shared<KernelLibrary>(path, handle, FunctionNames(image)));
}

}  // namespace

absl::StatusOr<Loaded> LoadForeignLibrary(const std::string& path, const std::string& sha256,
                                          const tvm_ffi::Libraries& tvm) {
  TF_ASSIGN_OR_RETURN(CheckedFile file, CheckedFile::Open(path));
  TF_ASSIGN_OR_RETURN(std::string bytes, file.Read());
  Sha256 digest;
  digest.Update(bytes.data(), bytes.size());
  std::string id = digest.HexDigest();
  if (!sha256.empty() && sha256 != id) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: its SHA-256 is ", id.substr(0, 16),
                                            "..., expected ", sha256.substr(0, 16), "..."));
  }
  Table& table = Libraries();
  absl::MutexLock lock(table.mu);
  std::shared_ptr<ForeignLibrary>& library = table.libraries[id];
  if (library != nullptr) return Loaded{std::move(id), library};
  const auto open = [&]() -> absl::StatusOr<std::shared_ptr<ForeignLibrary>> {
    TF_ASSIGN_OR_RETURN(ElfImage image, ElfImage::Parse(path, std::move(bytes)));
    if (HasKernelsAlone(image)) return OpenKernels(path, std::move(image));
    TF_ASSIGN_OR_RETURN(TvmLibrary made, LoadTvmModule(path, image, tvm));
    return ModuleLibrary::Of(path, std::move(made.module), FunctionNames(image), false, false);
  };
  absl::StatusOr<std::shared_ptr<ForeignLibrary>> opened = open();
  if (!opened.ok()) {
    table.libraries.erase(id);
    return opened.status();
  }
  library = *std::move(opened);
  return Loaded{std::move(id), library};
}

absl::StatusOr<Loaded> LoadForeignObject(void* object, bool serial, bool returns,
                                         const tvm_ffi::Libraries& tvm) {
  TF_RETURN_IF_ERROR(tvm_ffi::Load(tvm, /*with_runtime=*/false));
  Table& table = Libraries();
  absl::MutexLock lock(table.mu);
  if (const auto known = table.objects.find(object); known != table.objects.end()) {
    return Loaded{known->second, table.libraries[known->second]};
  }
  tvm_ffi::Value value = tvm_ffi::Value::Shared(object);
  std::shared_ptr<ForeignLibrary> library;
  if (value.type() == tvm_ffi::kFunction) {
    library = std::make_shared<SingleFunction>(std::move(value), serial, returns);
  } else if (value.type() == tvm_ffi::kModule) {
    TF_ASSIGN_OR_RETURN(library, ModuleLibrary::Of("a module of this process", std::move(value), {},
                                                   serial, returns));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("an object of TVM's type ", value.type(),
                                                   " is neither a function nor a module"));
  }
  std::string id = absl::StrCat("process-", table.objects.size());
  table.objects[object] = id;
  table.libraries[id] = library;
  return Loaded{std::move(id), std::move(library)};
}

absl::StatusOr<std::shared_ptr<ForeignLibrary>> FindForeignLibrary(const std::string& id) {
  Table& table = Libraries();
  absl::MutexLock lock(table.mu);
  const auto found = table.libraries.find(id);
  if (found != table.libraries.end()) return found->second;
  if (absl::StartsWith(id, "process-")) {
    return absl::FailedPreconditionError(
        "it is a function of another process, which no file holds: make the node from a library "
        "(composite.tf_op.Module(path)) to use it elsewhere");
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the library with SHA-256 ", id,
      " is not loaded: composite.tf_op.Module(path) loads it, or composite.load_model(folder, "
      "native_code=True) a saved model with all of its libraries, if you trust the code in them"));
}

}  // namespace composite
