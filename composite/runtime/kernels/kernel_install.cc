// How KernelTable takes kernels in.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/kernel_library.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/machine.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;

bool IsSame(const KernelRecord& a, const KernelRecord& b) {
  return a.name == b.name && a.in_shapes == b.in_shapes;
}

// `known` with what `update` says of its times, and of its check if that was made since.
KernelRecord Remeasured(KernelRecord known, const KernelRecord& update) {
  if (known.verdict == Verdict::kUnchecked) {
    known.error = update.error;
    known.error_unit = update.error_unit;
    known.exact = update.exact;
  }
  known.verdict = update.verdict;
  known.kernel_us = update.kernel_us;
  known.expansion_us = update.expansion_us;
  known.decisions = update.decisions;
  return known;
}

// A record with other numbers than the op has would make a call read past its tensors.
absl::Status CheckArity(const OpVersion& version, const KernelRecord& record) {
  tensorflow::NodeDef node;
  node.set_op(version.op_name);
  *node.mutable_attr() = record.attrs;
  tensorflow::DataTypeVector inputs, outputs;
  absl::Status status = tensorflow::InOutTypesForNode(node, version.op_def, &inputs, &outputs);
  if (!status.ok()) return status;
  if (inputs.size() != record.in_shapes.ranks.size() ||
      outputs.size() != record.out_shapes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", record.in_shapes.ranks.size(), " inputs and ", record.out_shapes.size(),
        " outputs, and the op ", inputs.size(), " and ", outputs.size()));
  }
  return absl::OkStatus();
}

// Opens the record's library.
absl::Status Open(InstalledKernel* kernel) {
  const KernelRecord& record = kernel->record;
  if (record.launches.has_value()) {
    absl::StatusOr<std::string> bytes = ReadKernel(record.library, record.library_sha256);
    if (!bytes.ok()) return bytes.status();
    kernel->image =
        std::make_shared<const CudaImage>(*std::move(bytes), record.launches->Functions());
    return absl::OkStatus();
  }
  std::vector<std::string> names = {record.name};
  for (size_t i = 0; i < record.packed.size(); ++i) names.push_back(record.PackerName(i));
  auto functions = LoadKernel(record.library, record.library_sha256, names);
  if (!functions.ok()) return functions.status();
  kernel->function = functions->front();
  kernel->packers.assign(functions->begin() + 1, functions->end());
  return absl::OkStatus();
}

}  // namespace

absl::Status KernelTable::AddLocked(KernelGroup* group, InstalledKernel kernel) {
  KernelSnapshot next = group->snapshot();
  next.rejection.clear();
  auto known = next.kernels.begin();
  while (known != next.kernels.end() && !IsSame((*known)->record, kernel.record)) ++known;
  if (known != next.kernels.end()) {
    // Another library has it, too, and what was found out here of the one stands.
    if (kernel.unchecked != nullptr) return absl::OkStatus();
    if (!kernel.has_code()) {
      kernel = {Remeasured((*known)->record, kernel.record), (*known)->function, (*known)->packers,
                (*known)->image, nullptr};
    }
    next.kernels.erase(known);
  } else if (!kernel.has_code()) {
    return absl::NotFoundError("it names no library, and no kernel of that name is installed");
  }
  if (kernel.packers.size() != kernel.record.packed.size()) {
    return absl::InvalidArgumentError("what packs its constants did not come with it");
  }
  // What a library brought is not compiled again, and stays.
  const ShapeClass* shape_class = next.Class(kernel.record.in_shapes);
  const bool may_go = shape_class != nullptr && !kernel.record.library.empty();
  kernel.used = may_go ? shape_class->used : nullptr;
  auto added = std::make_unique<const InstalledKernel>(std::move(kernel));
  // Among kernels of equal symbols the newest comes first.
  next.kernels.insert(next.kernels.begin(), added.get());
  group->kernels_.push_back(std::move(added));
  group->Publish(std::move(next));
  return absl::OkStatus();
}

void KernelTable::AddPortableLocked(const OpVersion& version, AttrSlice attrs,
                                    const std::string& device, KernelGroup* group) {
  const absl::StatusOr<Device> own = DeviceOfRecord(device);
  if (!own.ok() || own->kind != Device::kCuda) return;
  const KernelFamily* portable =
      families_.Find(version, Describe(version, attrs, nullptr, {kAllPortable}));
  if (portable == nullptr) return;
  for (const auto& [constants, brought] : portable->groups) {
    for (const InstalledKernel* kernel : brought->snapshot().kernels) {
      const absl::StatusOr<Device> least = DeviceOfRecord(kernel->record.device);
      if (!least.ok() || least->level > own->level) continue;
      AddLocked(group, *kernel).IgnoreError();  // it was added to another group
    }
  }
}

absl::Status KernelTable::AddBuiltLocked(KernelFamily* family, InstalledKernel kernel) {
  for (auto& [constants, group] : family->groups) {
    if (!group->HasConstants(kernel.record.packed)) continue;
    absl::Status status = AddLocked(group.get(), kernel);
    if (!status.ok()) return status;
  }
  family->packing.insert_or_assign(kernel.record.name, std::move(kernel));
  return absl::OkStatus();
}

absl::Status KernelTable::Install(InstalledKernel kernel) {
  const KernelRecord& record = kernel.record;
  auto version = Registry::Global().Find(record.op, record.program);
  if (!version.ok()) return version.status();
  const std::string name = record.name;
  const tensorflow::AttrValueMap own = record.attrs;
  const AttrSlice attrs(&own);
  const bool is_built = kernel.has_code();
  const tensorflow::AttrValue* constants =
      record.constants.has_value() ? &*record.constants : nullptr;
  absl::Status status = CheckMachine(record);
  // One for a device that nobody has is refused in the group of the CPU, where explain finds it.
  const absl::StatusOr<Device> device = DeviceOfRecord(record.device);
  const KernelKind kind{device.ok() ? device->name() : "", record.invariant};
  const std::shared_ptr<KernelGroup> group = Group(**version, attrs, constants, kind);
  // What tells the times of a kernel brings none, and a refusal is then no second one.
  const bool brings = is_built || !record.library.empty();
  if (status.ok() && brings) status = CheckArity(**version, record);
  if (status.ok() && brings && !is_built) status = Open(&kernel);  // read without the lock
  absl::MutexLock lock(mu_);
  KernelFamily& family = FamilyOf(**version, attrs, kind);
  family.is_built |= is_built;
  if (status.ok()) {
    const bool packs = is_built && !record.packed.empty();
    status = packs ? AddBuiltLocked(&family, std::move(kernel))
                   : AddLocked(group.get(), std::move(kernel));
  }
  if (status.ok()) {
    Count(GlobalStats().installed);
    changed_.SignalAll();
    return status;
  }
  if (brings) Count(GlobalStats().rejected);
  status = absl::Status(status.code(),
                        absl::StrCat("kernel ", name, " was refused: ", status.message()));
  KernelSnapshot next = group->snapshot();
  next.rejection = std::string(status.message());
  group->Publish(std::move(next));
  return status;
}

}  // namespace composite
