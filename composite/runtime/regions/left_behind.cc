#include "composite/runtime/regions/left_behind.h"

#include <utility>

#include "absl/algorithm/container.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::NodeDef;

// A state that it had may be the reason why somebody runs it, whom no edge shows.
bool IsWaitedFor(const Node& node) {
  return node.op_def().is_stateful() || absl::c_any_of(node.out_edges(), [](const Edge* edge) {
           return edge->IsControlEdge() && !edge->dst()->IsSink();
         });
}

// What the loops of a region are behind, besides what these wait for, `before`: the last nodes of
// each path to them that access variables or have effects, and arguments.
class Behind {
 public:
  Behind(const absl::flat_hash_set<const Node*>& inside, VariableUses* uses)
      : inside_(inside), uses_(*uses) {}

  std::vector<Node*> Of(const std::vector<Node*>& loops, const std::vector<Node*>& before) {
    for (Node* node : before) Visit(node, [](Node*) { return true; });
    std::vector<Node*> found;
    for (Node* loop : loops) {
      Visit(loop, [&](Node* from) {
        const bool is_one =
            IsGivenValue(*from) || (!inside_.contains(from) && uses_.Of(*from).any());
        if (is_one) found.push_back(from);
        return !is_one;
      });
    }
    absl::c_sort(found, [](const Node* a, const Node* b) { return a->id() < b->id(); });
    return found;
  }

 private:
  // Goes to what is before a node and was not met, and on as long as `goes_on`.
  void Visit(Node* node, absl::FunctionRef<bool(Node*)> goes_on) {
    seen_.insert(node);
    std::vector<Node*> pending = {node};
    while (!pending.empty()) {
      const Node* at = pending.back();
      pending.pop_back();
      for (const Edge* edge : at->in_edges()) {
        Node* from = edge->src();
        const bool is_new = from->IsOp() && seen_.insert(from).second;
        if (is_new && goes_on(from)) pending.push_back(from);
      }
    }
  }

  const absl::flat_hash_set<const Node*>& inside_;
  VariableUses& uses_;
  absl::flat_hash_set<const Node*> seen_;
};

}  // namespace

LeftBehind LeavesBehind(const std::vector<Node*>& nodes, const RegionFunction& function,
                        VariableUses* uses, tensorflow::Graph* graph) {
  LeftBehind left;
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    const Argument& argument = function.arguments[i];
    if (!argument.is_variable) continue;
    NodeDef read;
    read.set_op("ReadVariableOp");
    read.set_name(graph->NewName("composite_region_read"));
    read.set_device(nodes[0]->requested_device());
    (*read.mutable_attr())["dtype"].set_type(argument.dtype);
    left.reads.push_back({argument.value, std::move(read), static_cast<int>(i)});
  }
  const absl::flat_hash_set<const Node*> inside(nodes.begin(), nodes.end());
  absl::flat_hash_set<const Node*> known;
  for (Node* node : nodes) {
    for (const Edge* edge : node->in_edges()) {
      Node* from = edge->src();
      if (!edge->IsControlEdge() || from->IsSource() || inside.contains(from)) continue;
      if (known.insert(from).second) left.before.push_back(from);
    }
    if (IsWaitedFor(*node)) left.loops.push_back(node);
  }
  absl::flat_hash_set<const Node*> waits;
  for (const auto& [name, node] : function.origins) {
    if (inside.contains(node)) continue;
    for (const Edge* edge : node->in_edges()) {
      Node* from = edge->src();
      if (!edge->IsControlEdge() || from->IsSource()) continue;
      if (waits.insert(from).second) left.waits.push_back(from);
    }
  }
  absl::c_sort(left.waits, [](const Node* a, const Node* b) { return a->id() < b->id(); });
  left.behind = Behind(inside, uses).Of(left.loops, left.before);
  return left;
}

NodeDef NoOpFor(const Node& loop) {
  NodeDef def;
  def.set_op("NoOp");
  def.set_name(loop.name());
  def.set_device(loop.requested_device());
  return def;
}

}  // namespace composite
