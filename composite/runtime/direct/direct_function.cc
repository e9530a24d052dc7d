#include "composite/runtime/direct/direct_function.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/direct/step_container.h"
#include "composite/runtime/instantiate/aligned_input.h"
#include "composite/runtime/instantiate/inline_run.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::FunctionLibraryRuntime;
using tensorflow::ProcessFunctionLibraryRuntime;
using tensorflow::Tensor;
using tensorflow::Var;

// The graph takes of the arguments those that are `given`, and then captures.
class CallFrame : public tensorflow::CallFrameInterface {
 public:
  CallFrame(absl::Span<const Tensor* const> arguments, const std::vector<int>& given,
            const std::vector<Tensor>& captures, absl::Span<Tensor> results)
      : arguments_(arguments), given_(given), captures_(captures), results_(results) {}

  size_t num_args() const override { return given_.size() + captures_.size(); }
  size_t num_retvals() const override { return results_.size(); }

  absl::Status GetArg(int index, const Tensor** value) override {
    const int given = static_cast<int>(given_.size());
    *value = aligned_.Of(index < given ? *arguments_[given_[index]] : captures_[index - given]);
    return absl::OkStatus();
  }

  absl::Status SetRetval(int index, const Tensor& value) override {
    results_[index] = value;
    return absl::OkStatus();
  }

 private:
  const absl::Span<const Tensor* const> arguments_;
  const std::vector<int>& given_;
  const std::vector<Tensor>& captures_;
  const absl::Span<Tensor> results_;
  AlignedInputs aligned_;
};

const tensorflow::ResourceHandle& HandleIn(const Tensor& tensor) {
  return tensor.scalar<tensorflow::ResourceHandle>()();
}

// As ReadVariableOp reads it.
absl::Status Read(Var& variable, const Tensor& handle, tensorflow::DataType dtype, Tensor* value) {
  tensorflow::tf_shared_lock lock(*variable.mu());
  const Tensor& held = *variable.tensor();
  if (!held.IsInitialized() || held.dtype() != dtype) {
    return absl::FailedPreconditionError(
        absl::StrCat("variable ", HandleIn(handle).name(), " has no value"));
  }
  *value = variable.copy_on_read_mode.load() ? tensorflow::tensor::DeepCopy(held) : held;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DirectFunction>> DirectFunction::Make(
    FunctionLibraryRuntime* runtime, const std::string& name, const tensorflow::ConfigProto& config,
    std::vector<Tensor> captures) {
  std::unique_ptr<FunctionLibraryDefinition> library;
  std::unique_ptr<ProcessFunctionLibraryRuntime> process;
  FunctionLibraryRuntime* here = nullptr;
  // The library that a kernel sees is that of its node alone; a clone has the process's.
  TF_RETURN_IF_ERROR(runtime->Clone(&library, &process, &here));
  const tensorflow::FunctionDef* function = library->Find(name);
  if (function == nullptr) return absl::NotFoundError(absl::StrCat("no function ", name));
  const int arguments = function->signature().input_arg_size() - static_cast<int>(captures.size());
  if (arguments < 0) return absl::InvalidArgumentError("a function has fewer arguments");
  TF_ASSIGN_OR_RETURN(DirectGraph graph,
                      DirectGraphOf(here, *function, *library, config, arguments));
  auto made = std::shared_ptr<DirectFunction>(new DirectFunction);
  for (const auto& result : function->signature().output_arg()) {
    made->results_.push_back(result.type());
  }
  for (int i = 0; i < arguments; ++i) {
    made->arguments_.push_back(function->signature().input_arg(i).type());
  }
  TF_RETURN_IF_ERROR(runtime->Clone(&made->no_functions_, &made->process_, &made->runtime_,
                                    /*skip_flib_def=*/true));
  for (const DirectArgument& argument : graph.arguments) {
    if (argument.index < arguments) {
      made->given_.push_back(argument.index);
      continue;
    }
    Capture& capture = made->captures_.emplace_back();
    capture.tensor = captures[argument.index - arguments];
    capture.reads = argument.reads;
    if (argument.reads == tensorflow::DT_INVALID || !HandleIn(capture.tensor).IsRefCounting()) {
      continue;
    }
    TF_ASSIGN_OR_RETURN(capture.variable, HandleIn(capture.tensor).GetResource<Var>());
  }
  TF_ASSIGN_OR_RETURN(made->function_, InstantiatedFunction::MakeFast(made->runtime_, graph.name,
                                                                      std::move(graph.library)));
  return std::shared_ptr<const DirectFunction>(std::move(made));
}

absl::Status DirectFunction::ReadCaptures(std::vector<Tensor>* values) const {
  values->reserve(captures_.size());
  for (const auto& [tensor, reads, known] : captures_) {
    if (reads == tensorflow::DT_INVALID) {
      values->push_back(tensor);
      continue;
    }
    tensorflow::core::RefCountPtr<Var> found;
    if (known == nullptr) {
      const tensorflow::ResourceHandle& handle = HandleIn(tensor);
      Var* looked_up = nullptr;
      TF_RETURN_IF_ERROR(runtime_->device()->resource_manager()->Lookup(handle.container(),
                                                                        handle.name(), &looked_up));
      found.reset(looked_up);
    }
    Var& variable = known == nullptr ? *found : *known;
    TF_RETURN_IF_ERROR(Read(variable, tensor, reads, &values->emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status DirectFunction::Call(absl::Span<const Tensor* const> arguments,
                                  absl::Span<Tensor> results) const {
  std::vector<Tensor> captures;
  TF_RETURN_IF_ERROR(ReadCaptures(&captures));
  CallFrame frame(arguments, given_, captures, results);
  FunctionLibraryRuntime::Options options;
  StepContainer container(*runtime_->device(), options.step_id);
  options.step_container = &container;
  return RunInline(runtime_, std::move(options), *function_, &frame);
}

}  // namespace composite
