#include "composite/runtime/regions/partition.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "composite/runtime/regions/region_node.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

// A search for a way back that has seen so many groups gives up, and its groups stay apart.
constexpr int kMostVisited = 4096;

// Every node once, after what it reads; among those that are ready, the one that was made first.
std::vector<Node*> Ordered(const Graph& graph) {
  std::vector<int> missing(graph.num_node_ids(), 0);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  std::vector<Node*> order;
  for (const Node* node : graph.nodes()) {
    missing[node->id()] = static_cast<int>(node->in_edges().size());
    if (missing[node->id()] == 0) ready.push(node->id());
  }
  while (!ready.empty()) {
    Node* node = graph.FindNodeId(ready.top());
    ready.pop();
    order.push_back(node);
    for (const Edge* edge : node->out_edges()) {
      if (--missing[edge->dst()->id()] == 0) ready.push(edge->dst()->id());
    }
  }
  return order;
}

// Nodes that are one so far, a group, and which groups each reads or waits for.
class Groups {
 public:
  Groups(const Graph& graph, const RegionLimits& limits)
      : limits_(limits), group_of_(graph.num_node_ids(), -1) {}

  // A group of one node. What it reads was added before.
  void Add(Node* node, RegionRole role) {
    Group group;
    for (const Edge* edge : node->in_edges()) group.before.insert(group_of_[edge->src()->id()]);
    group.grows = role != RegionRole::kOutside && role != RegionRole::kCopied;
    group.computing = role == RegionRole::kComputes || role == RegionRole::kSums;
    group.sums = role == RegionRole::kSums;
    group.nodes = {node};
    group_of_[node->id()] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
  }

  // Joins the group of a node with those that it reads, where that leaves the region convex.
  void JoinProducers(const Node& node) {
    const int own = group_of_[node.id()];
    if (!groups_[own].grows) return;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Edge* edge = nullptr;
      if (!node.input_edge(i, &edge).ok()) continue;
      const int group = group_of_[node.id()], other = group_of_[edge->src()->id()];
      if (other != group && Fit(group, other) && !Surround(group, other)) Join(group, other);
    }
  }

  std::vector<std::vector<Node*>> Regions() {
    std::vector<std::vector<Node*>> regions;
    for (Group& group : groups_) {
      if (group.grows && group.computing >= limits_.computing) {
        regions.push_back(std::move(group.nodes));
      }
    }
    return regions;
  }

 private:
  struct Group {
    std::vector<Node*> nodes;         // in the order in which they were added
    absl::flat_hash_set<int> before;  // as they were called when this read them, see Current
    bool grows = false;
    int computing = 0;
    int sums = 0;
  };

  bool Fit(int a, int b) const {
    const Group &x = groups_[a], &y = groups_[b];
    return x.grows && y.grows && x.sums + y.sums <= limits_.sums &&
           static_cast<int>(x.nodes.size() + y.nodes.size()) <= limits_.nodes &&
           x.nodes[0]->requested_device() == y.nodes[0]->requested_device();
  }

  // The group that has taken this one in.
  int Current(int group) const {
    while (groups_[group].nodes.empty()) group = taken_by_.at(group);
    return group;
  }

  // Whether a way leads from one of two groups to the other, or to itself, through a third.
  bool Surround(int a, int b) const {
    absl::flat_hash_set<int> seen;
    std::vector<int> pending;
    const auto visit = [&](int reader) {
      for (int group : groups_[reader].before) {
        group = Current(group);
        if (group == reader) continue;
        if (group == a || group == b) {
          if (reader != a && reader != b) return true;
        } else if (seen.insert(group).second) {
          pending.push_back(group);
        }
      }
      return false;
    };
    if (visit(a) || visit(b)) return true;
    while (!pending.empty()) {
      if (static_cast<int>(seen.size()) > kMostVisited) return true;
      const int group = pending.back();
      pending.pop_back();
      if (visit(group)) return true;
    }
    return false;
  }

  // Puts the later group into the earlier one.
  void Join(int a, int b) {
    const int into = std::min(a, b), from = std::max(a, b);
    Group &group = groups_[into], &other = groups_[from];
    for (Node* node : other.nodes) group_of_[node->id()] = into;
    group.nodes.insert(group.nodes.end(), other.nodes.begin(), other.nodes.end());
    group.before.insert(other.before.begin(), other.before.end());
    group.computing += other.computing;
    group.sums += other.sums;
    taken_by_[from] = into;
    other = Group();
  }

  const RegionLimits limits_;
  std::vector<int> group_of_;  // by a node's id
  std::vector<Group> groups_;
  absl::flat_hash_map<int, int> taken_by_;
};

}  // namespace

std::vector<std::vector<Node*>> FindRegions(const Graph& graph, const RegionLimits& limits,
                                            absl::FunctionRef<bool(const Node&)> may_join) {
  if (absl::c_any_of(graph.op_nodes(), [](const Node* node) { return node->IsControlFlow(); })) {
    return {};
  }
  Groups groups(graph, limits);
  std::vector<int> place(graph.num_node_ids(), 0);
  const std::vector<Node*> order = Ordered(graph);
  for (size_t i = 0; i < order.size(); ++i) {
    Node* node = order[i];
    place[node->id()] = static_cast<int>(i);
    const RegionRole role = node->IsOp() ? RoleOf(*node) : RegionRole::kOutside;
    groups.Add(node, role == RegionRole::kOutside || may_join(*node) ? role : RegionRole::kOutside);
    groups.JoinProducers(*node);
  }
  std::vector<std::vector<Node*>> regions = groups.Regions();
  for (std::vector<Node*>& region : regions) {
    absl::c_sort(region, [&](Node* a, Node* b) { return place[a->id()] < place[b->id()]; });
  }
  return regions;
}

}  // namespace composite
