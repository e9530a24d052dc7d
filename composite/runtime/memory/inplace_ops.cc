#include "composite/runtime/memory/inplace_ops.h"

#include <atomic>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"

namespace composite {
namespace {

std::atomic<bool> has_inplace_ops{false};

// In TensorFlow 2.21. Assignments to TensorFlow 1's reference variables write in the same way, but
// no held tensor is such a variable's (see tensorflow/graph_pass.cc).
bool WritesInPlace(absl::string_view op) {
  return op == "InplaceUpdate" || op == "InplaceAdd" || op == "InplaceSub";
}

bool AnyIn(const tensorflow::FunctionLibraryDefinition& library) {
  return absl::c_any_of(library.ListFunctionNames(), [&](const std::string& name) {
    const auto record = library.FindRecord(name);
    return record != nullptr && absl::c_any_of(record->fdef().node_def(), [](const auto& node) {
             return WritesInPlace(node.op());
           });
  });
}

}  // namespace

void NoteInplaceOps(const tensorflow::Graph& graph,
                    const tensorflow::FunctionLibraryDefinition* library) {
  if (HasInplaceOps()) return;
  const bool found =
      absl::c_any_of(graph.op_nodes(),
                     [](const auto* node) { return WritesInPlace(node->type_string()); }) ||
      AnyIn(graph.flib_def()) || (library != nullptr && AnyIn(*library));
  if (found) has_inplace_ops.store(true, std::memory_order_relaxed);
}

bool HasInplaceOps() { return has_inplace_ops.load(std::memory_order_relaxed); }

}  // namespace composite
