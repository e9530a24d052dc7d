#include "composite/runtime/regions/unread.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "composite/runtime/base/op_traits.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

bool IsRead(const Node& node) {
  return absl::c_any_of(node.out_edges(), [](const Edge* edge) { return !edge->dst()->IsSink(); });
}

}  // namespace

void RemoveUnread(const tensorflow::FunctionDef& function, Graph* graph) {
  absl::flat_hash_set<std::string> waited_for;
  for (const auto& [name, node] : function.control_ret()) waited_for.insert(node);
  const auto is_unread = [&](const Node& node) {
    return !IsRead(node) && TraitsOf(node.type_string()).work != Work::kUnknown &&
           !node.op_def().is_stateful() && !waited_for.contains(node.name());
  };
  std::vector<Node*> unread;
  for (Node* node : graph->op_nodes()) {
    if (is_unread(*node)) unread.push_back(node);
  }
  while (!unread.empty()) {
    Node* node = unread.back();
    unread.pop_back();
    std::vector<Node*> before;
    for (const Edge* edge : node->in_edges()) before.push_back(edge->src());
    graph->RemoveNode(node);
    absl::c_sort(before, [](Node* a, Node* b) { return a->id() < b->id(); });
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (Node* source : before) {
      if (source->IsOp() && is_unread(*source)) unread.push_back(source);
    }
  }
}

}  // namespace composite
