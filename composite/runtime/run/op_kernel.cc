#include "composite/runtime/run/op_kernel.h"

#include <atomic>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/decision_text.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/node_groups.h"
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
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

class CompositeOp : public OpKernel {
 public:
  CompositeOp(OpKernelConstruction* context, std::string op_name)
      : OpKernel(context),
        op_name_(std::move(op_name)),
        device_(DeviceOfType(context->device_type().type_string())),
        eager_(AttrSlice(def()).Find(kProgramAttr) == nullptr),
        uncounted_(AttrSlice(def()).Find(kUncountedAttr) != nullptr),
        expansion_(context->device_type() == tensorflow::DEVICE_CPU) {
    if (context->function_library() != nullptr) {
      OP_REQUIRES_OK(
          context,
          LearnFunction(def(), *context->function_library()->GetFunctionLibraryDefinition()));
    }
    absl::StatusOr<Options> options = NodeOptions(AttrSlice(def()));
    OP_REQUIRES_OK(context, options.status());
    own_options_ = *options;
    for (auto dtypes : {context->input_types(), context->output_types()}) {
      for (tensorflow::DataType dtype : dtypes) dtypes_.Add(dtype);
    }
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
    KernelViews views;
  };

  absl::Status Run(OpKernelContext* context) {
    absl::StatusOr<const Binding*> binding = Bind();
    if (!binding.ok()) return binding.status();
    absl::StatusOr<Options> options = OptionsNow();
    if (!options.ok()) return options.status();
    return Run(context, **binding, *options);
  }

  // Carries out decisions until one holds: a kernel may turn out to be of no use in this call, and
  // one that is waited for may not come.
  absl::Status Run(OpKernelContext* context, const Binding& binding, const Options& options) {
    CallSnapshots snapshots(binding.views, context);
    absl::Status awaited;
    for (;;) {
      const Caller caller = CallerOf(*binding.version, dtypes_, uncounted_);
      const Decision decision = Decide(snapshots, caller, options, device_);
      const size_t group = decision.group;
      switch (decision.route) {
        case Route::kExpansion:
          return Asked(RunExpansion(context, binding, options), binding, decision, snapshots);
        case Route::kRefuse:
          return Refuse(*binding.version, decision, awaited);
        case Route::kCompile:
          EnqueueRequests(binding, &snapshots, decision.asks);
          awaited = Await(context, *binding.views[group], *snapshots.Call());
          if (!awaited.ok() && !absl::IsFailedPrecondition(awaited)) return awaited;
          if (!awaited.ok()) snapshots.LeaveUpTo(group);
          break;
        case Route::kKernel:
          absl::optional<absl::Status> done =
              RunKernel(context, binding, *snapshots.Call(), decision.choice, *binding.views[group],
                        OptionsOf(caller, options));
          if (done.has_value()) return Asked(*done, binding, decision, snapshots);
          snapshots.Leave(group);
          break;
      }
    }
  }

  // The status of a call, which asks for kernels when it has succeeded: what fails is not worth a
  // kernel, and shapes that do not fit together would teach the groups classes of no use.
  static absl::Status Asked(absl::Status done, const Binding& binding, const Decision& decision,
                            CallSnapshots& snapshots) {
    if (done.ok() && decision.asks != 0) EnqueueRequests(binding, &snapshots, decision.asks);
    return done;
  }

  static void EnqueueRequests(const Binding& binding, CallSnapshots* snapshots, unsigned groups) {
    for (size_t i = 0; i < binding.views.size(); ++i) {
      if ((groups >> i & 1) == 0) continue;
      KernelTable::Global().Enqueue(binding.views[i]->group(), *snapshots->Call());
    }
  }

  // FailedPrecondition when none will come.
  static absl::Status Await(OpKernelContext* context, const KernelView& view,
                            const Signature& call) {
    tensorflow::CancellationManager* cancellation = context->cancellation_manager();
    return KernelTable::Global().Await(view.group(), call, [cancellation] {
      return cancellation != nullptr && cancellation->IsCancelled();
    });
  }

  // `awaited`: what became of the last kernel that was waited for.
  absl::Status Refuse(const OpVersion& version, const Decision& decision,
                      const absl::Status& awaited) const;

  // Empty when the kernel cannot be used in this call. A kernel that meets an index out of range
  // says so: the error is TensorFlow's own to raise. One without memory for its workspace leaves
  // the call to the expansion, which may need less.
  absl::optional<absl::Status> RunKernel(OpKernelContext* context, const Binding& binding,
                                         const Signature& call, const Choice& choice,
                                         KernelView& view, const Options& options) {
    auto packed = view.Packed(context, *choice.kernel);
    absl::Status status = packed.status();
    if (status.ok()) {
      if (*packed == nullptr) return absl::nullopt;
      if (!uncounted_) Count(GlobalStats().kernel_launches);
      status = CallKernel(context, call, choice, **packed);
    }
    if (absl::IsOutOfRange(status)) return RunExpansion(context, binding, options);
    if (options.must() || !absl::IsResourceExhausted(status)) return status;
    if (!told_.exchange(true, std::memory_order_relaxed)) {
      LOG(WARNING) << type_string() << " (node " << name()
                   << "): TensorFlow's own ops run instead: " << status.message();
    }
    return RunExpansion(context, binding, options);
  }

  absl::Status RunExpansion(OpKernelContext* context, const Binding& binding,
                            const Options& options) {
    if (!uncounted_) Count(GlobalStats().expansion_runs);
    return expansion_.Run(context, binding.version, AttrSlice(def()), options.strict());
  }

  absl::StatusOr<Options> OptionsNow() const {
    Options options = own_options_;
    if (eager_) options = options.Or(ThreadOptions());
    absl::StatusOr<Options> process = ProcessOptions();
    if (!process.ok()) return process.status();
    return options.Or(*process);
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
  const Device device_;
  // Graph nodes are stamped with their program, eager calls are not. TF 2.21 runs an eager call on
  // the thread that makes it, wrapped into a function of one node; nothing in the context tells it
  // from a function of the user.
  const bool eager_;
  const bool uncounted_;
  DtypeSet dtypes_;                // of inputs and outputs
  std::atomic<bool> told_{false};  // that there was no memory for a kernel
  Options own_options_;
  std::atomic<uint64_t> bound_generation_{0};
  std::atomic<const Binding*> bound_{nullptr};
  ExpansionRunner expansion_;
  ForkMutex mu_;
  std::vector<std::unique_ptr<const Binding>> bindings_ ABSL_GUARDED_BY(mu_);
};

absl::Status CompositeOp::Refuse(const OpVersion& version, const Decision& decision,
                                 const absl::Status& awaited) const {
  if (decision.why == Why::kNotExact) return CheckExact(decision.choice.kernel->record);
  const Caller caller = CallerOf(version, dtypes_, uncounted_);
  return absl::FailedPreconditionError(absl::StrCat(
      type_string(), " (node ", name(), ") was called with backend=\"tvm\": ",
      awaited.ok() ? Sentence(decision, version, caller) : std::string(awaited.message())));
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
