#include "composite/runtime/kernels/kernel_group.h"

#include <algorithm>
#include <utility>

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

// Whether the compiler refused class i for what its symbols leave open. Then a call gets a class of
// its own sizes, unless the first that did so was refused too: a class may span calls that have no
// kernel, such as one whose shapes do not fit together.
bool IsTooGeneral(const KernelSnapshot& snapshot, size_t i) {
  const ShapeClass& general = snapshot.classes[i];
  if (SymbolCount(general.shapes) == 0 || !IsRefused(general)) return false;
  SymbolValues values;
  return std::none_of(snapshot.classes.begin() + i + 1, snapshot.classes.end(),
                      [&](const ShapeClass& later) {
                        return SymbolCount(later.shapes) == 0 && IsRefused(later) &&
                               Match(general.shapes, later.shapes, &values);
                      });
}

const ShapeClass* FindClass(const KernelSnapshot& snapshot, const Signature& call) {
  const ShapeClass* too_general = nullptr;
  SymbolValues values;
  for (size_t i = 0; i < snapshot.classes.size(); ++i) {
    const ShapeClass& shape_class = snapshot.classes[i];
    if (!Match(shape_class.shapes, call, &values)) continue;
    if (KernelRefuses(snapshot, shape_class, call)) continue;
    if (!IsTooGeneral(snapshot, i)) return &shape_class;
    too_general = &shape_class;
  }
  return snapshot.full ? too_general : nullptr;
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
  if (choice->shape_class == nullptr && !snapshot.full) choice->ones = std::move(ones);
}

}  // namespace

const ShapeClass* KernelSnapshot::Class(const Signature& shapes) const {
  for (const ShapeClass& known : classes) {
    if (known.shapes == shapes) return &known;
  }
  return nullptr;
}

Choice Choose(const KernelSnapshot& snapshot, const Signature& call, bool must) {
  Choice choice;
  for (const InstalledKernel* kernel : snapshot.kernels) {
    const KernelRecord& record = kernel->record;
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
  return choice;
}

KernelGroup::KernelGroup(tensorflow::NodeDef request, std::shared_ptr<RequestBudget> budget)
    : request_(std::move(request)), budget_(std::move(budget)) {
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
