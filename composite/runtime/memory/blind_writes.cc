#include "composite/runtime/memory/blind_writes.h"

#include <atomic>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"

namespace composite {
namespace {

std::atomic<bool> has_blind_writes{false};

// In TensorFlow 2.21. Those that assign to variables of TensorFlow 1 do, too; no tensor that is
// kept is one of theirs (see tensorflow/graph_pass.cc).
bool WritesBlindly(absl::string_view op) {
  return op == "InplaceUpdate" || op == "InplaceAdd" || op == "InplaceSub";
}

bool AnyIn(const tensorflow::FunctionLibraryDefinition& library) {
  return absl::c_any_of(library.ListFunctionNames(), [&](const std::string& name) {
    const auto record = library.FindRecord(name);
    return record != nullptr && absl::c_any_of(record->fdef().node_def(), [](const auto& node) {
             return WritesBlindly(node.op());
           });
  });
}

}  // namespace

void NoteBlindWritesIn(const tensorflow::Graph& graph,
                       const tensorflow::FunctionLibraryDefinition* library) {
  if (HasBlindWrites()) return;
  const bool found =
      absl::c_any_of(graph.op_nodes(),
                     [](const auto* node) { return WritesBlindly(node->type_string()); }) ||
      AnyIn(graph.flib_def()) || (library != nullptr && AnyIn(*library));
  if (found) has_blind_writes.store(true, std::memory_order_relaxed);
}

bool HasBlindWrites() { return has_blind_writes.load(std::memory_order_relaxed); }

}  // namespace composite
