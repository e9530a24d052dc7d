#include "composite/runtime/direct/direct_function.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/direct/direct_graph.h"
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
using tensorflow::OpKernelContext;
using tensorflow::ProcessFunctionLibraryRuntime;
using tensorflow::Tensor;

// The arguments are inputs of a kernel and captures; the results are the kernel's outputs.
class CallFrame : public tensorflow::CallFrameInterface {
 public:
  CallFrame(OpKernelContext* context, int first, const std::vector<Tensor>& captures)
      : context_(context), first_(first), captures_(captures) {}

  size_t num_args() const override { return given() + captures_.size(); }
  size_t num_retvals() const override { return context_->num_outputs(); }

  absl::Status GetArg(int index, const Tensor** value) override {
    *value = index < given() ? &context_->input(first_ + index) : &captures_[index - given()];
    return absl::OkStatus();
  }

  absl::Status SetRetval(int index, const Tensor& value) override {
    if (value.dtype() != context_->expected_output_dtype(index)) {
      return absl::InternalError("a function returns another dtype than its call");
    }
    context_->set_output(index, value);
    return absl::OkStatus();
  }

 private:
  int given() const { return context_->num_inputs() - first_; }

  OpKernelContext* const context_;
  const int first_;
  const std::vector<Tensor>& captures_;
};

// As ReadVariableOp reads it.
absl::Status Read(OpKernelContext* context, const tensorflow::ResourceHandle& handle,
                  tensorflow::DataType dtype, Tensor* value) {
  tensorflow::core::RefCountPtr<tensorflow::Var> variable;
  TF_RETURN_IF_ERROR(LookupResource(context, handle, &variable));
  tensorflow::tf_shared_lock lock(*variable->mu());
  const Tensor& held = *variable->tensor();
  if (!held.IsInitialized() || held.dtype() != dtype) {
    return absl::FailedPreconditionError(absl::StrCat("variable ", handle.name(), " has no value"));
  }
  *value = variable->copy_on_read_mode.load() ? tensorflow::tensor::DeepCopy(held) : held;
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
  made->captures_ = std::move(captures);
  made->reads_ = std::move(graph.reads);
  TF_ASSIGN_OR_RETURN(made->function_, InstantiatedFunction::MakeFast(made->runtime_, graph.name,
                                                                      std::move(graph.library)));
  return std::shared_ptr<const DirectFunction>(std::move(made));
}

absl::Status DirectFunction::ReadCaptures(OpKernelContext* context,
                                          std::vector<Tensor>* values) const {
  values->reserve(captures_.size());
  for (size_t i = 0; i < captures_.size(); ++i) {
    if (reads_[i] == tensorflow::DT_INVALID) {
      values->push_back(captures_[i]);
      continue;
    }
    const auto& handle = captures_[i].scalar<tensorflow::ResourceHandle>()();
    TF_RETURN_IF_ERROR(Read(context, handle, reads_[i], &values->emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status DirectFunction::Call(OpKernelContext* context, int first) const {
  if (context->num_inputs() - first != static_cast<int>(arguments_.size()) ||
      context->num_outputs() != static_cast<int>(results_.size())) {
    return absl::InvalidArgumentError(absl::StrCat("a function of ", arguments_.size(),
                                                   " arguments and ", results_.size(),
                                                   " results is called with others"));
  }
  std::vector<Tensor> captures;
  TF_RETURN_IF_ERROR(ReadCaptures(context, &captures));
  CallFrame frame(context, first, captures);
  FunctionLibraryRuntime::Options options = OptionsOf(context);
  options.rendezvous = context->rendezvous();
  return RunInline(runtime_, std::move(options), *function_, &frame);
}

}  // namespace composite
