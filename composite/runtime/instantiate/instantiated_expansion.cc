#include "composite/runtime/instantiate/instantiated_expansion.h"

#include <utility>

#include "composite/runtime/instantiate/aligned_input.h"
#include "composite/runtime/instantiate/expansion_library.h"
#include "composite/runtime/instantiate/inline_run.h"
#include "composite/runtime/instantiate/input_facts.h"
#include "composite/runtime/instantiate/partition_passes.h"
#include "composite/runtime/kernels/options.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

bool IsOnHost(const OpKernelContext& context, int input) {
  return context.input_memory_type(input) == tensorflow::HOST_MEMORY ||
         context.device()->attributes().device_type() == tensorflow::DEVICE_CPU;
}

// Arguments and results of the function are inputs and outputs of the kernel, without copies but
// of what TensorFlow's kernels could not read.
class KernelFrame : public tensorflow::CallFrameInterface {
 public:
  // `keeps_results`: otherwise a run is for its error alone.
  explicit KernelFrame(OpKernelContext* context, bool keeps_results = true)
      : context_(context), keeps_results_(keeps_results) {}

  size_t num_args() const override { return context_->num_inputs(); }
  size_t num_retvals() const override { return context_->num_outputs(); }

  absl::Status GetArg(int index, const Tensor** value) override {
    const Tensor& input = context_->input(index);
    *value = IsOnHost(*context_, index) ? aligned_.Of(input) : &input;
    return absl::OkStatus();
  }

  absl::Status SetRetval(int index, const Tensor& value) override {
    if (value.dtype() != context_->expected_output_dtype(index)) {
      return absl::InternalError("an expansion returns another dtype than its op");
    }
    if (!keeps_results_) return absl::OkStatus();
    if (Tensor* set = context_->mutable_output(index); set != nullptr) {
      *set = value;  // of a run that failed
    } else {
      context_->set_output(index, value);
    }
    return absl::OkStatus();
  }

 private:
  OpKernelContext* const context_;
  const bool keeps_results_;
  AlignedInputs aligned_;
};

absl::Status RunOnCpu(FunctionLibraryRuntime* runtime, OpKernelContext* context,
                      const InstantiatedFunction& function, KernelFrame* frame) {
  FunctionLibraryRuntime::Options options = OptionsOf(context);
  options.rendezvous = context->rendezvous();
  return RunInline(runtime, std::move(options), function, frame);
}

std::vector<std::string> ResourceDevices(const OpKernelContext& context) {
  std::vector<std::string> devices;
  for (int i = 0; i < context.num_inputs(); ++i) {
    if (context.input_dtype(i) != tensorflow::DT_RESOURCE) continue;
    devices.push_back(context.input(i).scalar<tensorflow::ResourceHandle>()().device());
  }
  return devices;
}

}  // namespace

InstantiatedExpansion::InstantiatedExpansion(Runtime* runtime,
                                             std::shared_ptr<const OpVersion> version,
                                             std::shared_ptr<const Expansion> expansion)
    : runtime_(runtime), version_(std::move(version)), expansion_(std::move(expansion)) {}

absl::StatusOr<std::shared_ptr<const InstantiatedExpansion>> InstantiatedExpansion::Make(
    Runtime* runtime, const OpKernelContext& context, std::shared_ptr<const OpVersion> version,
    std::shared_ptr<const Expansion> expansion) {
  auto made =
      std::make_shared<InstantiatedExpansion>(runtime, std::move(version), std::move(expansion));
  TF_ASSIGN_OR_RETURN(made->library_,
                      LibraryFor(*runtime->GetFunctionLibraryDefinition(), *made->expansion_));
  const bool on_cpu = runtime->device()->device_type() == tensorflow::DEVICE_CPU;
  TF_RETURN_IF_ERROR(on_cpu ? made->InstantiateOnCpu() : made->InstantiateOnDevice(context));
  return std::shared_ptr<const InstantiatedExpansion>(std::move(made));
}

absl::Status InstantiatedExpansion::InstantiateOnCpu() {
  auto plain = InstantiatedFunction::Make(runtime_, expansion_->name, library_);
  if (plain.ok()) {
    plain_ = *std::move(plain);
  } else {
    plain_ = Rewritten(runtime_);
    if (plain_ == nullptr) return plain.status();
  }
  MayBecomeHot();
  return absl::OkStatus();
}

void InstantiatedExpansion::MayBecomeHot() {
  // Where ops are deterministic, all calls run the same graph; functions of the caller's library
  // are not in the expansion's.
  if (!DeterminismRequired() && library_ == expansion_->library) {
    hot_ = std::make_unique<HotExpansion>(expansion_);
  }
}

std::unique_ptr<const InstantiatedFunction> InstantiatedExpansion::Rewritten(
    Runtime* runtime) const {
  auto library = WithPartitionPasses(*library_, runtime->device()->name());
  if (!library.ok() || *library == nullptr) return nullptr;
  auto made = InstantiatedFunction::Make(runtime, expansion_->name, *std::move(library));
  return made.ok() ? *std::move(made) : nullptr;
}

absl::Status InstantiatedExpansion::RunRewritten(Runtime* runtime, OpKernelContext* context,
                                                 const absl::Status& first) const {
  const bool is_refusal = absl::IsInvalidArgument(first) || absl::IsUnimplemented(first);
  if (!is_refusal || !expansion_->fdef.control_ret().empty() || HasEmptyInput(context)) {
    return first;
  }
  const InstantiatedFunction* rewritten = nullptr;
  {
    absl::MutexLock lock(mu_);
    if (!rewritten_.has_value()) rewritten_ = Rewritten(runtime);
    rewritten = rewritten_->get();
  }
  if (rewritten == nullptr) return first;
  KernelFrame frame(context);
  if (!RunOnCpu(runtime, context, *rewritten, &frame).ok()) return first;
  serving_.store(rewritten, std::memory_order_release);
  return absl::OkStatus();
}

const InstantiatedFunction& InstantiatedExpansion::Form(Runtime* runtime, OpKernelContext* context,
                                                        bool strict) const {
  const InstantiatedFunction* optimized =
      hot_ != nullptr && !strict ? hot_->Find(runtime, context) : nullptr;
  if (optimized != nullptr) return *optimized;
  const InstantiatedFunction* serving = serving_.load(std::memory_order_acquire);
  return serving != nullptr && !HasEmptyInput(context) ? *serving : *plain_;
}

absl::Status InstantiatedExpansion::InstantiateOnDevice(const OpKernelContext& context) {
  TF_ASSIGN_OR_RETURN(const Placement placement, PlacementOf(context));
  // An inner function is instantiated when it is called, and its ops may have no kernels there.
  if (placement.IsAllOn(runtime_->device()->name()) && library_->num_functions() == 1) {
    auto fast = InstantiatedFunction::MakeFast(runtime_, expansion_->name, library_);
    if (fast.ok()) {
      plain_ = *std::move(fast);
      MayBecomeHot();
      return absl::OkStatus();
    }
  }
  is_spread_ = true;
  resources_ = ResourceDevices(context);
  TF_ASSIGN_OR_RETURN(
      plain_, InstantiatedFunction::MakeSpread(runtime_, expansion_->name, library_, placement));
  return absl::OkStatus();
}

bool InstantiatedExpansion::Serves(Runtime* runtime, const OpKernelContext& context,
                                   const OpVersion* version,
                                   absl::Span<const InputFact> facts) const {
  return runtime_ == runtime && version_.get() == version && expansion_->Matches(facts) &&
         plain_->is_alive() && (!is_spread_ || resources_ == ResourceDevices(context));
}

absl::Status InstantiatedExpansion::Run(Runtime* runtime, OpKernelContext* context,
                                        bool strict) const {
  KernelFrame frame(context);
  const absl::Status status = RunOnCpu(runtime, context, Form(runtime, context, strict), &frame);
  return status.ok() ? status : RunRewritten(runtime, context, status);
}

absl::Status InstantiatedExpansion::Placed(Runtime* runtime, OpKernelContext* context,
                                           const absl::Status& status) const {
  if (!expansion_->fdef.control_ret().empty()) return status;
  auto telling = InstantiatedFunction::MakeTelling(runtime, expansion_->name, library_);
  if (!telling.ok()) return status;
  KernelFrame frame(context, /*keeps_results=*/false);
  absl::Status again = RunOnCpu(runtime, context, **telling, &frame);
  return again.ok() ? status : again;
}

absl::Status InstantiatedExpansion::CheckShapes(absl::Span<const InputFact> facts) const {
  return composite::CheckShapes(*expansion_, facts);
}

void InstantiatedExpansion::RunOnDevice(OpKernelContext* context, bool strict,
                                        DoneCallback done) const {
  FunctionLibraryRuntime::Options options = OptionsOf(context);
  // Two nodes may run the same function at once, in one step: what one of them sends from device to
  // device is not for the other.
  options.create_rendezvous = true;
  if (!is_spread_) {
    KernelFrame frame(context);
    const InstantiatedFunction& form = Form(runtime_, context, strict);
    return done(RunInline(runtime_, std::move(options), form, &frame));
  }
  options.runner = context->runner();
  options.run_all_kernels_inline = context->run_all_kernels_inline();
  options.source_device = runtime_->device()->name();
  std::vector<Tensor> arguments;
  AlignedInputs aligned;
  for (int i = 0; i < context->num_inputs(); ++i) {
    const Tensor& input = context->input(i);
    arguments.push_back(IsOnHost(*context, i) ? *aligned.Of(input) : input);
  }
  auto results = std::make_shared<std::vector<Tensor>>();
  runtime_->Run(options, plain_->handle(), arguments, results.get(),
                [context, results, done = std::move(done)](const absl::Status& status) {
                  KernelFrame frame(context);
                  absl::Status set = status;
                  for (size_t i = 0; i < results->size() && set.ok(); ++i) {
                    set = frame.SetRetval(static_cast<int>(i), (*results)[i]);
                  }
                  done(set);
                });
}

}  // namespace composite
