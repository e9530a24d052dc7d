#include "composite/runtime/instantiate/hot_expansion.h"

#include <algorithm>
#include <utility>

#include "composite/runtime/base/stats.h"
#include "composite/runtime/graph/common_shape.h"
#include "composite/runtime/instantiate/input_facts.h"
#include "composite/runtime/kernels/options.h"
#include "tensorflow/core/common_runtime/device.h"

namespace composite {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::OpKernelContext;
using tensorflow::PartialTensorShape;

struct HotExpansion::Form {
  std::vector<PartialTensorShape> shapes;
  std::unique_ptr<const InstantiatedFunction> function;  // null: it cannot be optimized

  bool Takes(OpKernelContext* context) const {
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (!shapes[i].IsCompatibleWith(context->input(i).shape())) return false;
    }
    return true;
  }
};

HotExpansion::HotExpansion(std::shared_ptr<const Expansion> expansion)
    : expansion_(std::move(expansion)) {}

HotExpansion::~HotExpansion() = default;

const InstantiatedFunction* HotExpansion::Find(FunctionLibraryRuntime* runtime,
                                               OpKernelContext* context) {
  if (HasEmptyInput(context)) return nullptr;
  const Form* form = exact_.load(std::memory_order_acquire);
  if (form == nullptr || !form->Takes(context)) form = Advance(runtime, context);
  return form == nullptr ? nullptr : form->function.get();
}

const HotExpansion::Form* HotExpansion::Advance(FunctionLibraryRuntime* runtime,
                                                OpKernelContext* context) {
  absl::MutexLock lock(mu_);
  const bool takes = !forms_.empty() && forms_.back()->Takes(context);
  if (!takes && forms_.size() == kForms) return nullptr;
  if (!Fit(context)) return nullptr;
  if (takes) return forms_.back().get();
  if (DeterminismRequired()) return nullptr;  // what ran before stays
  if (requested_ == nullptr) {
    Widen(context);
    if (++runs_ == kRuns) {
      requested_ = OptimizedExpansion::Request(expansion_, shapes_, RewriterOptions(runtime),
                                               runtime->device()->attributes());
    }
    return nullptr;
  }
  if (!requested_->done()) return nullptr;
  auto form = std::make_unique<Form>();
  form->shapes = shapes_;
  if (const auto& optimized = requested_->function(); optimized.ok()) {
    const bool on_cpu = runtime->device()->device_type() == tensorflow::DEVICE_CPU;
    // On another device one that needs the CPU as well is no use.
    auto function =
        on_cpu ? InstantiatedFunction::Make(runtime, optimized->name, optimized->library)
               : InstantiatedFunction::MakeFast(runtime, optimized->name, optimized->library);
    if (function.ok()) {
      form->function = *std::move(function);
      Count(GlobalStats().optimized);
    }
  }
  requested_ = nullptr;
  runs_ = 0;
  const bool is_exact =
      std::all_of(shapes_.begin(), shapes_.end(),
                  [](const PartialTensorShape& shape) { return shape.IsFullyDefined(); });
  if (is_exact) exact_.store(form.get(), std::memory_order_release);
  forms_.push_back(std::move(form));
  return forms_.back()->Takes(context) ? forms_.back().get() : nullptr;
}

bool HotExpansion::Fit(OpKernelContext* context) {
  Signature shapes = SignatureOf(context);
  if (fitting_.contains(shapes)) return true;
  if (!MayRunOptimized(*expansion_, ShapeFacts(context))) return false;
  if (fitting_.size() == kFitting) fitting_.clear();
  fitting_.insert(std::move(shapes));
  return true;
}

void HotExpansion::Widen(OpKernelContext* context) {
  const bool is_first = shapes_.empty();
  for (int i = 0; i < context->num_inputs(); ++i) {
    const PartialTensorShape& shape = context->input(i).shape();
    if (is_first) {
      shapes_.push_back(shape);
    } else {
      shapes_[i] = Common(shapes_[i], shape);
    }
  }
}

}  // namespace composite
