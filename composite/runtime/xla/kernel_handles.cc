#include "composite/runtime/xla/kernel_handles.h"

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/dtypes.h"

namespace composite {
namespace {

struct Table {
  ForkMutex mu;
  absl::flat_hash_map<std::string, std::unique_ptr<const XlaKernel>> kernels ABSL_GUARDED_BY(mu);
};

Table& Global() {
  static Table* table = new Table;  // threads may call while static objects go
  return *table;
}

}  // namespace

absl::StatusOr<const XlaKernel*> KeepForXla(const InstalledKernel& kernel,
                                            tensorflow::DataTypeSlice inputs,
                                            tensorflow::DataTypeSlice outputs) {
  const KernelRecord& record = kernel.record;
  if (kernel.function == nullptr || record.symbols() != 0 || !record.packed.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", record.name,
                     " is none for the shapes of one call on the CPU, without constants"));
  }
  auto made = std::make_unique<XlaKernel>();
  // By the address of its code, which stays: names are equal where libraries differ.
  made->handle =
      absl::StrCat(record.name, "@", absl::Hex(reinterpret_cast<uintptr_t>(kernel.function)));
  made->name = record.name;
  made->op = record.op;
  made->strategy = record.strategy;
  made->function = kernel.function;
  made->alignment = record.alignment;
  made->barriers = record.barriers;
  made->in_shapes = record.in_shapes;
  for (size_t i = 0; i < record.out_shapes.size(); ++i) {
    absl::InlinedVector<int64_t, 8> dims;
    absl::Status status = record.OutputDims(static_cast<int>(i), {}, &dims);
    if (!status.ok()) return status;
    made->out_shapes.emplace_back(dims.begin(), dims.end());
  }
  for (const tensorflow::DataTypeSlice dtypes : {inputs, outputs}) {
    for (const tensorflow::DataType dtype : dtypes) made->dtypes.push_back(ToAbi(dtype));
  }
  Table& table = Global();
  absl::MutexLock lock(table.mu);
  const std::string handle = made->handle;
  const auto [entry, is_new] = table.kernels.try_emplace(handle, std::move(made));
  if (is_new) Count(GlobalStats().xla_kernels);
  return entry->second.get();
}

const XlaKernel* FindForXla(absl::string_view handle) {
  Table& table = Global();
  absl::ReaderMutexLock lock(table.mu);
  const auto found = table.kernels.find(handle);
  return found == table.kernels.end() ? nullptr : found->second.get();
}

}  // namespace composite
