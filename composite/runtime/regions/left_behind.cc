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

bool MayWrite(const Uses& uses) {
  return uses.others == Use::kWrites ||
         absl::c_any_of(uses.inputs, [](Use use) { return use == Use::kWrites; });
}

// The nodes outside, before these, that may write to variables, the last ones of each path: what is
// read in front of the region was read behind them.
std::vector<Node*> WritersBefore(const std::vector<Node*>& loops,
                                 const absl::flat_hash_set<const Node*>& inside,
                                 VariableUses* uses) {
  std::vector<Node*> writers, pending = loops;
  absl::flat_hash_set<const Node*> seen(loops.begin(), loops.end());
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const Edge* edge : node->in_edges()) {
      Node* from = edge->src();
      if (!from->IsOp() || !seen.insert(from).second) continue;
      const bool writes = !inside.contains(from) && MayWrite(uses->Of(*from));
      (writes ? writers : pending).push_back(from);
    }
  }
  absl::c_sort(writers, [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return writers;
}

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
  std::vector<Node*> loops;
  for (Node* node : nodes) {
    for (const Edge* edge : node->in_edges()) {
      Node* from = edge->src();
      if (!edge->IsControlEdge() || from->IsSource() || inside.contains(from)) continue;
      if (known.insert(from).second) left.before.push_back(from);
    }
    if (IsWaitedFor(*node)) left.loops.push_back(node);
    if (node->op_def().is_stateful()) loops.push_back(node);  // it may read variables
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
  if (left.reads.empty()) return left;
  for (Node* writer : WritersBefore(loops, inside, uses)) {
    if (known.insert(writer).second) left.before.push_back(writer);
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
