#include "composite/runtime/hybrid/model.h"

#include <cfenv>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "composite/runtime/base/checked_file.h"
#include "composite/runtime/foreign/elf_image.h"
#include "composite/runtime/foreign/tvm_module.h"
#include "composite/runtime/hybrid/transfer.h"
#include "composite/runtime/kernels/kernel_library.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/platform/denormal.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/setround.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Tensor;
using tvm_abi::Any;

constexpr char kMain[] = "main", kOpen[] = "open", kDescribe[] = "describe";
constexpr char kOfTvm[] = "composite.tvm";

absl::Status OfTvm(absl::Status status) {
  status.SetPayload(kOfTvm, absl::Cord());
  return status;
}

absl::Status NoModule(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is no module that composite.hybrid wrote: ", why));
}

// A VM of a module. It finds the functions that it calls in TVM's table when it starts: there they
// are for this long. In a process with Python, composite.hybrid may have its own there.
absl::StatusOr<tvm_ffi::Value> Start(const tvm_ffi::Value& library,
                                     const std::shared_ptr<HybridCalls::Module>& module) {
  static auto* const mu = new absl::Mutex;
  absl::MutexLock lock(*mu);
  const auto calls = std::make_shared<HybridCalls>(module);
  const std::pair<const char*, tvm_ffi::Callback> functions[] = {
      {HybridCalls::kCallTf, [calls](absl::Span<const Any> all) { return calls->CallTf(all); }},
      {HybridCalls::kCallTfOnce,
       [calls](absl::Span<const Any> all) { return calls->CallTfOnce(all); }},
      {HybridCalls::kCallKernel,
       [calls](absl::Span<const Any> all) { return calls->CallKernel(all); }},
      {HybridCalls::kMemory, &HybridCalls::Memory},
      {HybridCalls::kRequire, &HybridCalls::Require},
      {HybridCalls::kSizes, &HybridCalls::Sizes},
  };
  std::vector<std::unique_ptr<tvm_ffi::GlobalScope>> scopes;
  for (const auto& [name, function] : functions) {
    scopes.push_back(std::make_unique<tvm_ffi::GlobalScope>(name, function));
    TF_RETURN_IF_ERROR(scopes.back()->status());
  }
  return StartMachine(library);
}

absl::StatusOr<std::string> Described(const tvm_ffi::Value& machine) {
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value describe, GetFunction(machine, kDescribe));
  if (describe.type() != tvm_ffi::kFunction) {
    return absl::InvalidArgumentError("it does not describe itself");
  }
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value told, tvm_ffi::Call(kDescribe, describe, {}));
  TF_ASSIGN_OR_RETURN(const Tensor text, ToTensorFlow(told.any()));
  return std::string(static_cast<const char*>(text.data()), text.TotalBytes());
}

absl::StatusOr<HybridCalls::Kernels> KernelsOf(const std::string& path, void* library,
                                               const std::vector<std::string>& names) {
  HybridCalls::Kernels kernels;
  for (const std::string& name : names) {
    TF_ASSIGN_OR_RETURN(kernels[name], FindKernel(library, path, name));
  }
  return kernels;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HybridModel>> HybridModel::Open(
    const std::string& path, const tvm_ffi::Libraries& libraries) {
  TF_ASSIGN_OR_RETURN(CheckedFile file, CheckedFile::Open(path));
  TF_ASSIGN_OR_RETURN(std::string bytes, file.Read());
  absl::StatusOr<ElfImage> image = ElfImage::Parse(path, std::move(bytes));
  if (!image.ok()) return NoModule(path, image.status().message());
  const std::vector<std::string> names = image->DefinedWith(tvm_abi::kSymbolPrefix);
  TF_ASSIGN_OR_RETURN(TvmLibrary library, LoadTvmModule(path, *image, libraries));
  FillSlotsOf(library.handle.get());  // its kernels run on TensorFlow's threads
  TF_ASSIGN_OR_RETURN(HybridCalls::Kernels kernels, KernelsOf(path, library.handle.get(), names));
  std::shared_ptr<HybridCalls::Module> module(new HybridCalls::Module{std::move(kernels), {}});
  const absl::StatusOr<tvm_ffi::Value> machine = Start(library.module, module);
  if (!machine.ok()) return NoModule(path, machine.status().message());
  if (machine->type() != tvm_ffi::kModule) return NoModule(path, "it is no program of Relax");
  absl::StatusOr<std::string> json = Described(*machine);
  if (!json.ok()) return NoModule(path, json.status().message());
  absl::StatusOr<HybridDescription> description = HybridDescription::Parse(*std::move(json));
  if (!description.ok()) {
    return absl::Status(description.status().code(),
                        absl::StrCat(path, ": ", description.status().message()));
  }
  TF_ASSIGN_OR_RETURN(tvm_ffi::Value main, GetFunction(*machine, kMain));
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value open, GetFunction(*machine, kOpen));
  if (main.type() != tvm_ffi::kFunction || open.type() != tvm_ffi::kFunction) {
    return NoModule(path, "it has no main, or nothing that opens it");
  }
  const absl::StatusOr<tvm_ffi::Value> made = tvm_ffi::Call(kOpen, open, {});
  const absl::Status failure = HybridCalls::TakeFailure();
  if (!made.ok()) return failure.ok() ? made.status() : failure;
  std::unique_ptr<HybridModel> model(
      new HybridModel(std::move(library), std::move(module), *std::move(description)));
  model->idle_.Give(std::make_unique<tvm_ffi::Value>(std::move(main)));
  return model;
}

absl::StatusOr<IdleMachines::Main> HybridModel::TakeMain() {
  if (IdleMachines::Main main = idle_.Take()) return main;
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value machine, Start(library_.module, module_));
  TF_ASSIGN_OR_RETURN(tvm_ffi::Value main, GetFunction(machine, kMain));
  return std::make_unique<tvm_ffi::Value>(std::move(main));
}

absl::StatusOr<std::vector<Tensor>> HybridModel::Call(absl::Span<const Tensor> inputs) {
  TF_RETURN_IF_ERROR(description_.CheckInputs(inputs));
  TF_ASSIGN_OR_RETURN(const TvmValues values, ToTvm(inputs));
  TF_ASSIGN_OR_RETURN(IdleMachines::Main main, TakeMain());
  // As TensorFlow has its threads compute, whatever this one does otherwise.
  const tensorflow::port::ScopedFlushDenormal flush;
  const tensorflow::port::ScopedSetRound round(FE_TONEAREST);
  const absl::StatusOr<tvm_ffi::Value> result = tvm_ffi::Call(kMain, *main, values.all);
  idle_.Give(std::move(main));
  const absl::Status failure = HybridCalls::TakeFailure();
  if (!result.ok()) return failure.ok() ? OfTvm(result.status()) : failure;
  if (result->type() != tvm_ffi::kArray) return absl::InternalError("main returned no tuple");
  return ToTensorFlow(result->elements());
}

bool HybridModel::IsOfTvm(const absl::Status& status) {
  return status.GetPayload(kOfTvm).has_value();
}

}  // namespace composite
