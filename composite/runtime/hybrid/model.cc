#include "composite/runtime/hybrid/model.h"

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/checked_file.h"
#include "composite/runtime/foreign/elf_image.h"
#include "composite/runtime/foreign/tvm_module.h"
#include "composite/runtime/hybrid/transfer.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Tensor;
using tvm_abi::Any;

constexpr char kMain[] = "main", kOpen[] = "open", kDescribe[] = "describe";

absl::Status NoModule(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is no module that composite.hybrid wrote: ", why));
}

// The VM of a module, with functions that call back into `calls`. A VM finds the functions that it
// calls in TVM's table when it starts: there they are for this long. In a process with Python,
// composite.hybrid has its own there.
absl::StatusOr<tvm_ffi::Value> Start(const tvm_ffi::Value& module,
                                     const std::shared_ptr<HybridCalls>& calls) {
  static auto* const mu = new std::mutex;
  const std::lock_guard<std::mutex> lock(*mu);
  const tvm_ffi::GlobalScope call_tf(
      HybridCalls::kCallTf, [calls](absl::Span<const Any> all) { return calls->CallTf(all); });
  const tvm_ffi::GlobalScope call_tf_once(
      HybridCalls::kCallTfOnce,
      [calls](absl::Span<const Any> all) { return calls->CallTfOnce(all); });
  const tvm_ffi::GlobalScope require(
      HybridCalls::kRequire, [calls](absl::Span<const Any> all) { return calls->Require(all); });
  TF_RETURN_IF_ERROR(call_tf.status());
  TF_RETURN_IF_ERROR(call_tf_once.status());
  TF_RETURN_IF_ERROR(require.status());
  return StartMachine(module);
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

}  // namespace

absl::StatusOr<std::unique_ptr<HybridModel>> HybridModel::Open(
    const std::string& path, const tvm_ffi::Libraries& libraries) {
  TF_ASSIGN_OR_RETURN(CheckedFile file, CheckedFile::Open(path));
  TF_ASSIGN_OR_RETURN(std::string bytes, file.Read());
  TF_ASSIGN_OR_RETURN(ElfImage image, ElfImage::Parse(path, std::move(bytes)));
  TF_ASSIGN_OR_RETURN(const tvm_ffi::Value module, LoadTvmModule(path, image, libraries));
  auto calls = std::make_shared<HybridCalls>();
  const absl::StatusOr<tvm_ffi::Value> machine = Start(module, calls);
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
  const absl::StatusOr<tvm_ffi::Value> opened = tvm_ffi::Call(kOpen, open, {});
  const absl::Status failure = calls->TakeFailure();
  if (!opened.ok()) return failure.ok() ? opened.status() : failure;
  return std::unique_ptr<HybridModel>(
      new HybridModel(std::move(calls), std::move(main), *std::move(description)));
}

absl::StatusOr<std::vector<Tensor>> HybridModel::Call(absl::Span<const Tensor> inputs) {
  TF_RETURN_IF_ERROR(description_.CheckInputs(inputs));
  TF_ASSIGN_OR_RETURN(const TvmValues values, ToTvm(inputs));
  const std::lock_guard<std::mutex> lock(one_call_);
  const absl::StatusOr<tvm_ffi::Value> result = tvm_ffi::Call(kMain, main_, values.all);
  const absl::Status failure = calls_->TakeFailure();
  if (!result.ok()) return failure.ok() ? result.status() : failure;
  if (result->type() != tvm_ffi::kArray) return absl::InternalError("main returned no tuple");
  return ToTensorFlow(result->elements());
}

}  // namespace composite
