#include "composite/runtime/run/op_kernel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/run/expansion_runner.h"
#include "composite/runtime/run/kernel_call.h"
#include "composite/runtime/run/kernel_view.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/util/determinism.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// Whether it is no use to wait for kernels of this snapshot's group.
bool NoneWillCome(const KernelSnapshot& snapshot, const Choice& choice) {
  if (choice.shape_class == nullptr) return snapshot.full;
  return choice.shape_class->state != ShapeClass::kPending;
}

class CompositeOp : public OpKernel {
 public:
  CompositeOp(OpKernelConstruction* context, std::string op_name)
      : OpKernel(context),
        op_name_(std::move(op_name)),
        on_cpu_(context->device_type() == tensorflow::DEVICE_CPU),
        eager_(AttrSlice(def()).Find(kProgramAttr) == nullptr),
        uncounted_(AttrSlice(def()).Find(kUncountedAttr) != nullptr),
        expansion_(on_cpu_) {
    if (context->function_library() != nullptr) {
      OP_REQUIRES_OK(
          context,
          LearnFunction(def(), *context->function_library()->GetFunctionLibraryDefinition()));
    }
    absl::StatusOr<Options> options = NodeOptions(AttrSlice(def()));
    OP_REQUIRES_OK(context, options.status());
    own_options_ = *options;
    const auto fits = [](tensorflow::DataTypeSlice dtypes) {
      return std::all_of(dtypes.begin(), dtypes.end(), IsKernelDtype);
    };
    may_have_kernel_ = on_cpu_ && fits(context->input_types()) && fits(context->output_types());
  }

  void Compute(OpKernelContext* context) override {
    // TensorFlow is built without exceptions: one that left this function would end the process.
    try {
      context->SetStatus(Run(context));
    } catch (const std::exception& error) {
      context->SetStatus(absl::InternalError(absl::StrCat(type_string(), ": ", error.what())));
    }
  }

 private:
  // The version that this node stands for at present.
  struct Binding {
    std::shared_ptr<const OpVersion> version;
    std::vector<std::unique_ptr<KernelView>> views;
  };

  absl::Status Run(OpKernelContext* context) {
    absl::StatusOr<const Binding*> binding = Bind();
    if (!binding.ok()) return binding.status();
    absl::StatusOr<Options> options = OptionsNow();
    if (!options.ok()) return options.status();
    if (options->must()) return RunMust(context, **binding, options->strict());
    if (options->expansion_only() || !may_have_kernel_) {
      return RunExpansion(context, **binding);
    }
    return RunAuto(context, **binding);
  }

  absl::Status RunAuto(OpKernelContext* context, const Binding& binding) {
    const Signature call = SignatureOf(context);
    bool may_ask = binding.version->kernel_possible.load(std::memory_order_relaxed);
    for (const auto& view : binding.views) {
      if (!view->Applies(context)) continue;
      const KernelSnapshot& snapshot = view->snapshot();
      const Choice choice = Choose(snapshot, call, /*must=*/false);
      if (may_ask && choice.ones.has_value()) KernelTable::Global().Ask(view->group(), call);
      if (choice.kernel != nullptr) {
        absl::optional<absl::Status> done = RunKernel(context, binding, call, choice, *view);
        if (done.has_value()) return *done;
        continue;
      }
      if (choice.slower != nullptr) {
        // At rest, it was slower than an expansion that has constants for variables.
        if (view->needs() == KernelView::kRest) continue;
        break;
      }
      if (may_ask && choice.shape_class == nullptr) KernelTable::Global().Ask(view->group(), call);
      may_ask = may_ask && NoneWillCome(snapshot, choice);
    }
    return RunExpansion(context, binding);
  }

  absl::Status RunMust(OpKernelContext* context, const Binding& binding, bool strict);
  absl::StatusOr<Choice> AwaitKernel(OpKernelContext* context, KernelView& view,
                                     const Signature& call);

  // Empty when the kernel cannot be used in this call. A kernel that meets an index out of range
  // says so: the error is TensorFlow's own to raise.
  absl::optional<absl::Status> RunKernel(OpKernelContext* context, const Binding& binding,
                                         const Signature& call, const Choice& choice,
                                         KernelView& view) {
    auto packed = view.Packed(context, *choice.kernel);
    if (!packed.ok()) return packed.status();
    if (*packed == nullptr) return absl::nullopt;
    if (!uncounted_) Count(GlobalStats().kernel_launches);
    absl::Status status = CallKernel(context, call, choice, **packed);
    return absl::IsOutOfRange(status) ? RunExpansion(context, binding) : status;
  }

  absl::Status RunExpansion(OpKernelContext* context, const Binding& binding) {
    if (!uncounted_) Count(GlobalStats().expansion_runs);
    return expansion_.Run(context, binding.version, AttrSlice(def()));
  }

  absl::StatusOr<Options> OptionsNow() const {
    Options options = own_options_;
    if (eager_) options = options.Or(ThreadOptions());
    absl::StatusOr<Options> process = ProcessOptions();
    if (!process.ok()) return process.status();
    options = options.Or(*process);
    // The user's must is about the op that he calls, not about what is derived from it. That of a
    // measurement is about the node that is measured.
    if (options.must() && op_name_ == kFunctionOp && !uncounted_) options.backend = Backend::kAuto;
    return options;
  }

  // A redefinition reaches the kernels that the eager context has cached: they look whether the
  // registry has changed since they last bound.
  absl::StatusOr<const Binding*> Bind() {
    const uint64_t generation = Registry::Global().generation();
    if (bound_generation_.load(std::memory_order_acquire) == generation) {
      return bound_.load(std::memory_order_acquire);
    }
    return Rebind(generation);
  }

  absl::StatusOr<const Binding*> Rebind(uint64_t generation) ABSL_LOCKS_EXCLUDED(mu_) {
    auto version = Registry::Global().Resolve(op_name_, AttrSlice(def()));
    if (!version.ok()) return version.status();
    auto views = ViewsOf(**version, AttrSlice(def()), !uncounted_);
    absl::MutexLock lock(&mu_);
    const Binding* bound = bound_.load(std::memory_order_relaxed);
    if (bound == nullptr || bound->version != *version) {
      bindings_.push_back(
          std::make_unique<const Binding>(Binding{*std::move(version), std::move(views)}));
      bound = bindings_.back().get();
      bound_.store(bound, std::memory_order_release);
    }
    bound_generation_.store(generation, std::memory_order_release);
    return bound;
  }

  const std::string op_name_;  // of the composite; a node of a TF op may have its composition here
  const bool on_cpu_;
  // Graph nodes are stamped with their program, eager calls are not. TF 2.21 runs an eager call on
  // the thread that makes it, wrapped into a function of one node; nothing in the context tells it
  // from a function of the user.
  const bool eager_;
  const bool uncounted_;
  bool may_have_kernel_ = false;
  Options own_options_;
  std::atomic<uint64_t> bound_generation_{0};
  std::atomic<const Binding*> bound_{nullptr};
  ExpansionRunner expansion_;
  absl::Mutex mu_;
  std::vector<std::unique_ptr<const Binding>> bindings_ ABSL_GUARDED_BY(mu_);
};

absl::Status CompositeOp::RunMust(OpKernelContext* context, const Binding& binding, bool strict) {
  const auto refuse = [this](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat(type_string(), " (node ", name(), ") was called with backend=\"tvm\": ", why));
  };
  if (!on_cpu_) return refuse("kernels run on the CPU so far, and this node is placed elsewhere");
  if (!may_have_kernel_) return refuse("no kernel takes its dtypes");
  const Signature call = SignatureOf(context);
  absl::Status status;
  for (const auto& view : binding.views) {
    if (!view->Applies(context)) continue;
    absl::StatusOr<Choice> choice = AwaitKernel(context, *view, call);
    status = choice.status();
    if (!choice.ok() && !absl::IsFailedPrecondition(status)) return status;
    if (!choice.ok()) continue;
    if (strict) {
      absl::Status exact = CheckExact(choice->kernel->record);
      if (!exact.ok()) return exact;
    }
    absl::optional<absl::Status> done = RunKernel(context, binding, call, *choice, *view);
    if (done.has_value()) return *done;
  }
  return refuse(status.message());
}

// FailedPrecondition when none will come.
absl::StatusOr<Choice> CompositeOp::AwaitKernel(OpKernelContext* context, KernelView& view,
                                                const Signature& call) {
  Choice choice = Choose(view.group()->snapshot(), call, /*must=*/true);
  // With deterministic ops the kernel of a call stays the same.
  if (choice.ones.has_value() && !uncounted_ && !tensorflow::OpDeterminismRequired()) {
    KernelTable::Global().Ask(view.group(), call);
  }
  if (choice.kernel != nullptr) return choice;
  // A call that has a kernel already does not stop for a better one.
  if (view.needs() == KernelView::kRest) {
    if (choice.shape_class == nullptr) KernelTable::Global().Ask(view.group(), call);
    return absl::FailedPreconditionError("its kernel is not there yet");
  }
  // The worker measures on the thread that makes kernels: it would wait for itself.
  if (uncounted_) return absl::FailedPreconditionError("the kernel to measure does not cover it");
  tensorflow::CancellationManager* cancellation = context->cancellation_manager();
  absl::Status status = KernelTable::Global().Await(view.group(), call, [cancellation] {
    return cancellation != nullptr && cancellation->IsCancelled();
  });
  if (!status.ok()) return status;
  choice = Choose(view.group()->snapshot(), call, /*must=*/true);
  if (choice.kernel != nullptr) return choice;
  return absl::FailedPreconditionError("its kernel was replaced meanwhile; call again");
}

class CompositeOpFactory : public tensorflow::kernel_factory::OpKernelFactory {
 public:
  explicit CompositeOpFactory(std::string op_name) : op_name_(std::move(op_name)) {}

  OpKernel* Create(OpKernelConstruction* context) override {
    return new CompositeOp(context, op_name_);
  }

 private:
  const std::string op_name_;
};

}  // namespace

std::unique_ptr<tensorflow::kernel_factory::OpKernelFactory> NewOpKernelFactory(
    std::string op_name) {
  return std::make_unique<CompositeOpFactory>(std::move(op_name));
}

}  // namespace composite
