#include "composite/runtime/variables/take_over.h"

#include <cstddef>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

// What is behind what, where each part is one node.
class Order {
 public:
  explicit Order(const std::vector<GraphPart>& parts) : parts_(parts) {
    for (size_t k = 0; k < parts.size(); ++k) {
      for (const Node* node : parts[k].nodes) part_of_[node] = k;
    }
  }

  bool IsInPart(const Node* node) const { return part_of_.contains(node); }

  void Wait(size_t part, const Node* node) { waiting_[node].push_back(part); }

  // What comes after a part.
  absl::flat_hash_set<const Node*> Behind(size_t part) const {
    absl::flat_hash_set<const Node*> seen;
    std::vector<const Node*> pending;
    const auto reach = [&](const Node* node) {
      if (seen.insert(node).second) pending.push_back(node);
    };
    const auto reach_part = [&](size_t k) { absl::c_for_each(parts_[k].nodes, reach); };
    reach_part(part);
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      for (const Edge* edge : node->out_edges()) {
        const auto own = part_of_.find(edge->dst());
        own == part_of_.end() ? reach(edge->dst()) : reach_part(own->second);
      }
      const auto waiting = waiting_.find(node);
      if (waiting != waiting_.end()) absl::c_for_each(waiting->second, reach_part);
    }
    return seen;
  }

 private:
  const std::vector<GraphPart>& parts_;
  absl::flat_hash_map<const Node*, size_t> part_of_;
  absl::flat_hash_map<const Node*, std::vector<size_t>> waiting_;
};

// An update whose sum a part gives.
struct Update {
  const Node* node;
  int before;  // the argument of the part that is what the variable held
  int after;   // its result
};

// By part; in the order of the graph, so that equal graphs stay equal.
std::vector<std::vector<Update>> UpdatesOf(const Graph& graph,
                                           const std::vector<GraphPart>& parts) {
  absl::flat_hash_map<NodeOutput, std::pair<size_t, int>> results;
  for (size_t k = 0; k < parts.size(); ++k) {
    const std::vector<NodeOutput>& own = parts[k].results;
    for (size_t i = 0; i < own.size(); ++i) results[own[i]] = {k, static_cast<int>(i)};
  }
  std::vector<std::vector<Update>> updates(parts.size());
  for (const Node* node : graph.op_nodes()) {
    if (node->type_string() != kUpdateOp) continue;
    const auto result = results.find(OutputOf(*EdgeOf(*node, kAfter)));
    const NodeOutput before = OutputOf(*EdgeOf(*node, kBefore));
    if (result == results.end() || before.first->type_string() != kReadToUpdateOp) continue;
    const auto& [part, after] = result->second;
    const std::vector<NodeOutput>& arguments = parts[part].arguments;
    const auto argument = absl::c_find(arguments, before);
    if (argument == arguments.end()) continue;
    updates[part].push_back({node, static_cast<int>(argument - arguments.begin()), after});
  }
  return updates;
}

}  // namespace

std::vector<TakeOvers> TakeOversOf(const Graph& graph, const std::vector<GraphPart>& parts) {
  const std::vector<std::vector<Update>> updates = UpdatesOf(graph, parts);
  std::vector<TakeOvers> found(parts.size());
  if (absl::c_all_of(updates, [](const auto& own) { return own.empty(); })) return found;
  Order order(parts);
  for (size_t k = 0; k < parts.size(); ++k) {
    if (updates[k].empty()) continue;
    auto& [pairs, waits] = found[k];
    const absl::flat_hash_set<const Node*> behind = order.Behind(k);
    const auto is_later = [&](const Node* node) {
      return behind.contains(node) || order.IsInPart(node);
    };
    for (const Update& update : updates[k]) {
      const std::vector<Node*> before = WaitsFor(*update.node);
      if (absl::c_any_of(before, is_later)) continue;
      pairs.insert(pairs.end(), {update.before, update.after});
      for (Node* node : before) {
        order.Wait(k, node);
        if (!absl::c_linear_search(waits, node)) waits.push_back(node);
      }
    }
  }
  return found;
}

}  // namespace composite
