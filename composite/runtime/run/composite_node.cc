#include "composite/runtime/run/composite_node.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "composite/runtime/kernels/decision_text.h"
#include "composite/runtime/kernels/node_groups.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/run/gpu_device.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using tensorflow::AttrSlice;

namespace {

// ", region 1a2b3c4d of MatMul, Tanh", for a region.
std::string OfRegion(const OpVersion& version) {
  if (!absl::StartsWith(version.digest, kRegionPrefix)) return "";
  std::set<std::string> ops;
  const tensorflow::FunctionDef* region = version.function->Find(version.digest);
  if (region == nullptr) return "";
  for (const tensorflow::NodeDef& node : region->node_def()) ops.insert(node.op());
  ops.erase("Const");
  return absl::StrCat(", region ", version.digest.substr(version.digest.size() - 8), " of ",
                      absl::StrJoin(ops, ", "));
}

}  // namespace

absl::Status CompositeNode::Init(tensorflow::OpKernelConstruction* context) {
  const AttrSlice attrs(kernel_.def());
  eager_ = attrs.Find(kProgramAttr) == nullptr;
  uncounted_ = attrs.Find(kUncountedAttr) != nullptr;
  if (context->function_library() != nullptr) {
    TF_ASSIGN_OR_RETURN(
        renamed_,
        LearnFunction(kernel_.def(), *context->function_library()->GetFunctionLibraryDefinition()));
  }
  TF_ASSIGN_OR_RETURN(own_options_, NodeOptions(attrs));
  device_ = DeviceOf(context->device_type().type_string(), *context->device());
  for (auto dtypes : {context->input_types(), context->output_types()}) {
    for (tensorflow::DataType dtype : dtypes) dtypes_.Add(dtype);
  }
  return absl::OkStatus();
}

absl::StatusOr<Options> CompositeNode::OptionsNow() const {
  Options options = own_options_;
  if (eager_) options = options.Or(ThreadOptions());
  absl::StatusOr<Options> process = ProcessOptions();
  if (!process.ok()) return process.status();
  return options.Or(*process);
}

Caller CompositeNode::CallerAs(const OpVersion& version) const {
  return CallerOf(version, dtypes_, uncounted_);
}

absl::StatusOr<const CompositeNode::Binding*> CompositeNode::Bind(bool invariant) {
  const uint64_t generation = Registry::Global().generation();
  const Current& current = current_[invariant ? 1 : 0];
  if (current.generation.load(std::memory_order_acquire) == generation) {
    return current.binding.load(std::memory_order_acquire);
  }
  return Rebind(generation, invariant);
}

absl::StatusOr<const CompositeNode::Binding*> CompositeNode::Rebind(uint64_t generation,
                                                                    bool invariant) {
  auto version = Registry::Global().Resolve(op_name_, attrs());
  if (!version.ok()) return version.status();
  absl::MutexLock lock(mu_);
  Current& current = current_[invariant ? 1 : 0];
  const Binding* bound = current.binding.load(std::memory_order_relaxed);
  if (bound == nullptr || bound->version != *version) {
    bound = Keep(Bound(*std::move(version), invariant));
  }
  current.generation.store(generation, std::memory_order_release);
  return bound;
}

absl::StatusOr<const CompositeNode::Binding*> CompositeNode::Rest(Resting resting, bool invariant) {
  absl::StatusOr<const Binding*> binding = Bind(invariant);
  if (!binding.ok()) return binding;
  for (const auto& view : (*binding)->views) view->Release();
  absl::MutexLock lock(mu_);
  resting_ = std::move(resting);
  return Keep(Bound((*binding)->version, invariant));
}

CompositeNode::Binding CompositeNode::Bound(std::shared_ptr<const OpVersion> version,
                                            bool invariant) const {
  tensorflow::NodeDef stamped;
  *stamped.mutable_attr() = kernel_.def().attr();
  for (int input : resting_.inputs) {
    (*stamped.mutable_attr())[kVariablesAttr].mutable_list()->add_i(input);
  }
  const bool eager = (eager_ || attrs().Find(kEagerAttr) != nullptr) && !uncounted_;
  KernelViews views = ViewsOf(*version, resting_.inputs.empty() ? attrs() : AttrSlice(stamped),
                              device_, invariant, eager, !uncounted_, resting_.sets);
  RegionCounts* const counts = uncounted_ ? nullptr : CountsOf(version->digest);
  const bool may_rest = (eager_ || attrs().Find(kArgumentsAttr) != nullptr) &&
                        device_.kind == Device::kCpu && version->has_sums;
  return Binding{std::move(version), std::move(views), counts, may_rest, invariant};
}

const CompositeNode::Binding* CompositeNode::Keep(Binding binding) {
  bindings_.push_back(std::make_unique<const Binding>(std::move(binding)));
  const Binding* const kept = bindings_.back().get();
  current_[kept->invariant ? 1 : 0].binding.store(kept, std::memory_order_release);
  return kept;
}

absl::Status CompositeNode::Refusal(const OpVersion& version, const Decision& decision,
                                    const absl::Status& awaited) const {
  if (decision.why == Why::kNotExact) return CheckExact(decision.choice.kernel->record);
  return absl::FailedPreconditionError(
      absl::StrCat(kernel_.type_string(), " (node ", kernel_.name(), OfRegion(version),
                   ") was called with backend=\"tvm\": ",
                   awaited.ok() ? Sentence(decision, version, CallerAs(version))
                                : std::string(awaited.message())));
}

}  // namespace composite
