#include "composite/runtime/memory/inplace_ops.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/refcount.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryDefinition;

std::atomic<bool> has_inplace_ops{false};

// In TensorFlow 2.21. Assignments to TensorFlow 1's reference variables write in the same way, but
// no held tensor is such a variable's (see tensorflow/graph_pass.cc).
bool WritesInPlace(absl::string_view op) {
  return op == "InplaceUpdate" || op == "InplaceAdd" || op == "InplaceSub";
}

// Walks nodes and the functions that they reach, each once.
class Search {
 public:
  explicit Search(const FunctionLibraryDefinition& library) : library_(library) {}

  bool Finds(const tensorflow::Graph& graph) {
    for (const tensorflow::Node* node : graph.op_nodes()) {
      if (Meets(node->type_string(), node->attrs())) return true;
    }
    while (!next_.empty()) {
      const auto function = std::move(next_.back());
      next_.pop_back();
      for (const tensorflow::NodeDef& node : function->fdef().node_def()) {
        if (Meets(node.op(), tensorflow::AttrSlice(node))) return true;
      }
    }
    return false;
  }

 private:
  bool Meets(const std::string& op, tensorflow::AttrSlice attrs) {
    if (WritesInPlace(op)) return true;
    Reach(op);
    for (const auto& [name, value] : attrs) {
      if (value.has_func()) Reach(value.func().name());
      for (const auto& function : value.list().func()) Reach(function.name());
    }
    return false;
  }

  void Reach(const std::string& function) {
    if (!met_.insert(function).second) return;
    if (auto record = library_.FindRecord(function)) next_.push_back(std::move(record));
  }

  const FunctionLibraryDefinition& library_;
  absl::flat_hash_set<std::string> met_;
  std::vector<tensorflow::core::RefCountPtr<tensorflow::FunctionRecord>> next_;
};

}  // namespace

void NoteInplaceOps(const tensorflow::Graph& graph, const FunctionLibraryDefinition& library) {
  if (!HasInplaceOps() && Search(library).Finds(graph)) {
    has_inplace_ops.store(true, std::memory_order_relaxed);
  }
}

bool HasInplaceOps() { return has_inplace_ops.load(std::memory_order_relaxed); }

}  // namespace composite
