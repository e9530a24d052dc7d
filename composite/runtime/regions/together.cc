#include "composite/runtime/regions/together.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

bool HandsList(const Edge& edge) {
  return !edge.IsControlEdge() &&
         edge.src()->output_type(edge.src_output()) == tensorflow::DT_VARIANT;
}

// Nodes by the first of those that they are together with.
class Sets {
 public:
  // Each node is alone.
  explicit Sets(const Graph& graph)
      : graph_(graph), first_(graph.num_node_ids()), sizes_(graph.num_node_ids(), 1) {
    std::iota(first_.begin(), first_.end(), 0);
  }

  int of(const Node& node) const { return first_[node.id()]; }
  int size(int set) const { return sizes_[set]; }

  void JoinWhatHandsLists() {
    for (const Edge* edge : graph_.edges()) {
      if (HandsList(*edge)) Join(First(edge->src()->id()), First(edge->dst()->id()));
    }
    for (int id = 0; id < static_cast<int>(first_.size()); ++id) first_[id] = First(id);
  }

  // Has each node of a set be alone.
  void Split(int set) {
    for (int id = 0; id < static_cast<int>(first_.size()); ++id) {
      if (first_[id] != set) continue;
      first_[id] = id;
      sizes_[id] = 1;
    }
  }

  // A set that the others cannot be put in order with, of those that are not done: going from any
  // of them to one that it reads, again and again, meets a set a second time.
  int OnCircle(const std::vector<int>& missing) const {
    std::vector<int> before(first_.size(), -1);
    for (const Node* node : graph_.nodes()) {
      const int set = of(*node);
      for (const Edge* edge : node->in_edges()) {
        const int other = of(*edge->src());
        if (other == set || missing[other] == 0) continue;
        if (before[set] < 0 || other < before[set]) before[set] = other;
      }
    }
    int at = static_cast<int>(absl::c_find_if(before, [](int set) { return set >= 0; }) -
                              before.begin());
    absl::flat_hash_set<int> met;
    while (met.insert(at).second) at = before[at];
    while (sizes_[at] == 1) at = before[at];
    return at;
  }

 private:
  int First(int id) const {
    while (first_[id] != id) id = first_[id];
    return id;
  }

  void Join(int a, int b) {
    if (a == b) return;
    first_[std::max(a, b)] = std::min(a, b);
    sizes_[std::min(a, b)] += sizes_[std::max(a, b)];
  }

  const Graph& graph_;
  std::vector<int> first_;  // by a node's id
  std::vector<int> sizes_;  // by the id of the first
};

// The sets in order, as far as there is one; `missing`: what each still waits for.
std::vector<int> Ordered(const Graph& graph, const Sets& sets, std::vector<int>* missing) {
  std::vector<std::vector<int>> readers(graph.num_node_ids());
  missing->assign(graph.num_node_ids(), 0);
  for (const Edge* edge : graph.edges()) {
    const int from = sets.of(*edge->src()), to = sets.of(*edge->dst());
    if (from == to) continue;
    readers[from].push_back(to);
    (*missing)[to] += 1;
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (const Node* node : graph.nodes()) {
    if (sets.of(*node) == node->id() && (*missing)[node->id()] == 0) ready.push(node->id());
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int set = ready.top();
    ready.pop();
    order.push_back(set);
    for (int reader : readers[set]) {
      if (--(*missing)[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

// Splits the sets that cannot be inside.
void SplitOutside(const Graph& graph, absl::FunctionRef<bool(const Node&)> may_be_inside,
                  Sets* sets) {
  absl::flat_hash_set<int> outside;
  for (const Node* node : graph.nodes()) {
    const int set = sets->of(*node);
    if (sets->size(set) == 1) continue;
    const Node& first = *graph.FindNodeId(set);
    if (!may_be_inside(*node) || node->requested_device() != first.requested_device()) {
      outside.insert(set);
    }
  }
  for (int set : outside) sets->Split(set);
}

}  // namespace

std::vector<Together> InOrder(const Graph& graph,
                              absl::FunctionRef<bool(const Node&)> may_be_inside) {
  std::vector<int> missing;
  const Sets alone(graph);
  const std::vector<int> nodes = Ordered(graph, alone, &missing);
  Sets sets = alone;
  sets.JoinWhatHandsLists();
  const Sets wanted = sets;
  SplitOutside(graph, may_be_inside, &sets);
  std::vector<int> order = Ordered(graph, sets, &missing);
  while (absl::c_any_of(missing, [](int count) { return count > 0; })) {
    sets.Split(sets.OnCircle(missing));
    order = Ordered(graph, sets, &missing);
  }
  std::vector<Together> of_set(graph.num_node_ids());
  for (int id : nodes) {
    Node* node = graph.FindNodeId(id);
    const bool is_split = sets.of(*node) != wanted.of(*node) || sets.size(id) < wanted.size(id);
    Together& together = of_set[sets.of(*node)];
    together.may_be_inside = !is_split && may_be_inside(*node);
    together.nodes.push_back(node);
  }
  std::vector<Together> ordered;
  for (int set : order) ordered.push_back(std::move(of_set[set]));
  return ordered;
}

}  // namespace composite
