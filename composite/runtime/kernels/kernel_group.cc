#include "composite/runtime/kernels/kernel_group.h"

#include <algorithm>
#include <utility>

#include "composite/runtime/base/record_tables.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/program/node_attrs.h"

namespace composite {
namespace {

bool OutputsAreEmpty(const KernelRecord& record, absl::Span<const int64_t> values) {
  absl::InlinedVector<int64_t, 8> dims;
  for (size_t i = 0; i < record.out_shapes.size(); ++i) {
    if (!record.OutputDims(static_cast<int>(i), values, &dims).ok()) return false;
    if (std::find(dims.begin(), dims.end(), 0) == dims.end()) return false;
  }
  return true;
}

// The kernel of this class was compiled, and turned out to have bounds that the call is outside of.
bool KernelRefuses(const KernelSnapshot& snapshot, const ShapeClass& shape_class,
                   const Signature& call) {
  SymbolValues values;
  for (const InstalledKernel* kernel : snapshot.kernels) {
    if (kernel->record.in_shapes == shape_class.shapes &&
        Match(kernel->record.in_shapes, call, &values) && !kernel->record.Admits(values)) {
      return true;
    }
  }
  return false;
}

bool IsRefused(const ShapeClass& shape_class) {
  return shape_class.state == ShapeClass::kNotCovered || shape_class.state == ShapeClass::kFailed;
}

// What stands for the calls of class i: the class, unless the compiler refused it. That may be for
// what its symbols leave open, such as shapes that do not fit together: then calls get classes of
// their own sizes (null) if the first that was asked for has a kernel, and share what becomes of it
// if it has none, or not yet.
const ShapeClass* Standing(const KernelSnapshot& snapshot, size_t i) {
  const ShapeClass& general = snapshot.classes[i];
  if (SymbolCount(general.shapes) == 0 || !IsRefused(general)) return &general;
  SymbolValues values;
  for (size_t j = i + 1; j < snapshot.classes.size(); ++j) {
    const ShapeClass& later = snapshot.classes[j];
    if (SymbolCount(later.shapes) != 0 || !Match(general.shapes, later.shapes, &values)) continue;
    if (IsRefused(later)) return &general;
    return later.state == ShapeClass::kPending ? &later : nullptr;
  }
  return nullptr;
}

const ShapeClass* FindClass(const KernelSnapshot& snapshot, const Signature& call) {
  SymbolValues values;
  for (size_t i = 0; i < snapshot.classes.size(); ++i) {
    const ShapeClass& shape_class = snapshot.classes[i];
    if (!Match(shape_class.shapes, call, &values)) continue;
    if (KernelRefuses(snapshot, shape_class, call)) continue;
    if (const ShapeClass* standing = Standing(snapshot, i)) return standing;
  }
  return nullptr;
}

bool IsForXla(const tensorflow::NodeDef& request) {
  const auto device = request.attr().find(kDeviceField);
  return device != request.attr().end() && device->second.s() == XlaCpu().name();
}

// Whose check was asked for, has a class.
const InstalledKernel* FindUnchecked(const KernelSnapshot& snapshot, const Signature& call) {
  SymbolValues values;
  for (const InstalledKernel* kernel : snapshot.kernels) {
    const KernelRecord& record = kernel->record;
    if (kernel->unchecked != nullptr && Match(record.in_shapes, call, &values) &&
        record.Admits(values) && snapshot.Class(record.in_shapes) == nullptr) {
      return kernel;
    }
  }
  return nullptr;
}

// The class of the calls that have 1 where these values of the symbols are 1.
Signature BindOnes(Signature shapes, const SymbolValues& values) {
  SymbolValues bound;
  int64_t left = 0;
  for (int64_t value : values) bound.push_back(value == 1 ? 1 : --left);
  for (int64_t& dim : shapes.dims) {
    if (dim < 0) dim = bound[-dim - 1];
  }
  return shapes;
}

// Completes the choice of this kernel, whose symbols have their values.
void LookAtOnes(const KernelSnapshot& snapshot, const InstalledKernel& kernel, Choice* choice) {
  if (std::find(choice->values.begin(), choice->values.end(), 1) == choice->values.end()) return;
  Signature ones = BindOnes(kernel.record.in_shapes, choice->values);
  choice->shape_class = snapshot.Class(ones);
  if (choice->shape_class == nullptr) choice->ones = std::move(ones);
}

}  // namespace

std::atomic<int64_t> LastUse::clock_{0};

const ShapeClass* KernelSnapshot::Class(const Signature& shapes) const {
  for (const ShapeClass& known : classes) {
    if (known.shapes == shapes) return &known;
  }
  return nullptr;
}

bool KernelSnapshot::HasSizes(const Signature& call) const {
  return std::all_of(sizes.begin(), sizes.end(), [&](int input) {
    return call.ranks[input] != 0 || call.Value(input) != nullptr;
  });
}

Choice Choose(const KernelSnapshot& snapshot, const Signature& call, bool must) {
  Choice choice;
  for (const InstalledKernel* kernel : snapshot.kernels) {
    const KernelRecord& record = kernel->record;
    if (record.verdict == Verdict::kUnchecked) continue;
    if (!must && record.verdict == Verdict::kUnmeasured) continue;
    if (!Match(record.in_shapes, call, &choice.values)) continue;
    if (!record.Admits(choice.values)) {
      choice.nothing_to_compute = call.has_empty_input() && OutputsAreEmpty(record, choice.values);
      if (!choice.nothing_to_compute) continue;
    }
    (must || record.Wins(choice.values) ? choice.kernel : choice.slower) = kernel;
    LookAtOnes(snapshot, *kernel, &choice);
    return choice;
  }
  choice.shape_class = FindClass(snapshot, call);
  if (choice.shape_class == nullptr) choice.unchecked = FindUnchecked(snapshot, call);
  return choice;
}

KernelGroup::KernelGroup(tensorflow::NodeDef request, std::shared_ptr<RequestBudget> budget)
    : request_(std::move(request)),
      has_exact_classes_(IsForXla(request_)),
      budget_(std::move(budget)) {
  Publish(KernelSnapshot());
}

bool KernelGroup::HasConstants(const std::vector<PackedArgument>& packed) const {
  auto constants = request_.attr().find(kConstantsAttr);
  if (constants == request_.attr().end()) return packed.empty();
  const auto& known = constants->second.list().i();
  return std::all_of(packed.begin(), packed.end(), [&](const PackedArgument& argument) {
    return std::find(known.begin(), known.end(), argument.source) != known.end();
  });
}

void KernelGroup::Publish(KernelSnapshot snapshot) {
  std::stable_sort(snapshot.kernels.begin(), snapshot.kernels.end(),
                   [](const InstalledKernel* a, const InstalledKernel* b) {
                     return a->record.symbols() < b->record.symbols();
                   });
  snapshots_.push_back(std::make_unique<const KernelSnapshot>(std::move(snapshot)));
  current_.store(snapshots_.back().get(), std::memory_order_release);
}

}  // namespace composite
