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

}  // namespace

LeftBehind LeavesBehind(const std::vector<Node*>& nodes, const RegionFunction& function,
                        tensorflow::Graph* graph) {
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
