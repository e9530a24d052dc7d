#include "composite/runtime/op_kernel.h"

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
#include "composite/runtime/expansion_runner.h"
#include "composite/runtime/function_op.h"
#include "composite/runtime/kernel_call.h"
#include "composite/runtime/kernel_table.h"
#include "composite/runtime/options.h"
#include "composite/runtime/packed_constants.h"
#include "composite/runtime/registry.h"
#include "composite/runtime/stats.h"
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

// A group as one node sees it. With deterministic ops, what the group knew at the first call is all
// that the node ever sees: a kernel that arrives later would change bits in the middle of a
// training.
class GroupView {
 public:
  explicit GroupView(KernelGroup* group) : group_(group) {}
  GroupView(GroupView&& other) : group_(other.group_) {}  // before its first use

  KernelGroup* group() const { return group_; }
  const KernelSnapshot& snapshot() const {
    const KernelSnapshot& now = group_->snapshot();
    if (!tensorflow::OpDeterminismRequired()) return now;
    const KernelSnapshot* first = nullptr;
    return first_.compare_exchange_strong(first, &now) ? now : *first;
  }

 private:
  KernelGroup* const group_;
  mutable std::atomic<const KernelSnapshot*> first_{nullptr};
};

// Whether kernels of the node's own group are to be asked for: those for its constants will not
// come.
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
        expansion_(on_cpu_),
        packed_(!uncounted_) {
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
    GroupView own;
    absl::optional<GroupView> constants;  // kernels that make use of the node's constants
  };

  absl::Status Run(OpKernelContext* context) {
    absl::StatusOr<const Binding*> binding = Bind();
    if (!binding.ok()) return binding.status();
    absl::StatusOr<Options> options = OptionsNow();
    if (!options.ok()) return options.status();
    if (options->must()) return RunMust(context, **binding);
    if (options->expansion_only() || !may_have_kernel_) {
      return RunExpansion(context, **binding);
    }
    return RunAuto(context, **binding);
  }

  absl::Status RunAuto(OpKernelContext* context, const Binding& binding) {
    const Signature call = SignatureOf(context);
    bool may_ask = binding.version->kernel_possible.load(std::memory_order_relaxed);
    if (binding.constants.has_value()) {
      const KernelSnapshot& snapshot = binding.constants->snapshot();
      const Choice choice = Choose(snapshot, call, /*must=*/false);
      if (choice.slower != nullptr) return RunExpansion(context, binding);
      if (choice.kernel != nullptr) {
        absl::optional<absl::Status> done = RunOnConstants(context, call, choice);
        if (done.has_value()) return *done;
      } else {
        if (may_ask && choice.shape_class == nullptr) {
          KernelTable::Global().Ask(binding.constants->group(), call);
        }
        may_ask = may_ask && NoneWillCome(snapshot, choice);
      }
    }
    const Choice choice = Choose(binding.own.snapshot(), call, /*must=*/false);
    if (choice.kernel != nullptr) return RunKernel(context, call, choice, {});
    if (may_ask && choice.slower == nullptr && choice.shape_class == nullptr) {
      KernelTable::Global().Ask(binding.own.group(), call);
    }
    return RunExpansion(context, binding);
  }

  // Empty when the constants turn out not to be constant.
  absl::optional<absl::Status> RunOnConstants(OpKernelContext* context, const Signature& call,
                                              const Choice& choice) {
    auto packed = packed_.Get(context, *choice.kernel);
    if (!packed.ok()) return packed.status();
    if (*packed == nullptr) return absl::nullopt;
    return RunKernel(context, call, choice, **packed);
  }

  absl::Status RunMust(OpKernelContext* context, const Binding& binding);
  absl::StatusOr<Choice> AwaitKernel(OpKernelContext* context, KernelGroup* group,
                                     const Signature& call);

  absl::Status RunKernel(OpKernelContext* context, const Signature& call, const Choice& choice,
                         absl::Span<const tensorflow::Tensor> packed) {
    if (!uncounted_) Count(GlobalStats().kernel_launches);
    return CallKernel(context, call, choice, packed);
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
    absl::Status status = options.Check();
    if (!status.ok()) return status;
    // The user's must is about the op that he calls, not about what is derived from it.
    if (options.must() && op_name_ == kFunctionOp) options.backend = Backend::kAuto;
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
    const AttrSlice attrs(def());
    KernelTable& table = KernelTable::Global();
    GroupView own(table.Group(**version, attrs));
    absl::optional<GroupView> constants;
    if (const auto* known = attrs.Find(kConstantsAttr)) {
      constants.emplace(table.Group(**version, attrs, known));
    }
    absl::MutexLock lock(&mu_);
    const Binding* bound = bound_.load(std::memory_order_relaxed);
    if (bound == nullptr || bound->version != *version) {
      bindings_.push_back(std::unique_ptr<const Binding>(
          new Binding{*std::move(version), std::move(own), std::move(constants)}));
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
  PackedConstants packed_;
  absl::Mutex mu_;
  std::vector<std::unique_ptr<const Binding>> bindings_ ABSL_GUARDED_BY(mu_);
};

absl::Status CompositeOp::RunMust(OpKernelContext* context, const Binding& binding) {
  const auto refuse = [this](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat(type_string(), " (node ", name(), ") was called with backend=\"tvm\": ", why));
  };
  if (!on_cpu_) return refuse("kernels run on the CPU so far, and this node is placed elsewhere");
  if (!may_have_kernel_) return refuse("no kernel takes its dtypes");
  const Signature call = SignatureOf(context);
  if (binding.constants.has_value()) {
    absl::StatusOr<Choice> choice = AwaitKernel(context, binding.constants->group(), call);
    if (choice.ok()) {
      absl::optional<absl::Status> done = RunOnConstants(context, call, *choice);
      if (done.has_value()) return *done;
    } else if (!absl::IsFailedPrecondition(choice.status())) {
      return choice.status();
    }
  }
  absl::StatusOr<Choice> choice = AwaitKernel(context, binding.own.group(), call);
  if (absl::IsFailedPrecondition(choice.status())) return refuse(choice.status().message());
  if (!choice.ok()) return choice.status();
  return RunKernel(context, call, *choice, {});
}

// FailedPrecondition when none will come.
absl::StatusOr<Choice> CompositeOp::AwaitKernel(OpKernelContext* context, KernelGroup* group,
                                                const Signature& call) {
  Choice choice = Choose(group->snapshot(), call, /*must=*/true);
  if (choice.kernel != nullptr) return choice;
  tensorflow::CancellationManager* cancellation = context->cancellation_manager();
  absl::Status status = KernelTable::Global().Await(group, call, [cancellation] {
    return cancellation != nullptr && cancellation->IsCancelled();
  });
  if (!status.ok()) return status;
  choice = Choose(group->snapshot(), call, /*must=*/true);
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
