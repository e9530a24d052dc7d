#include "composite/runtime/regions/partition.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "composite/runtime/regions/region_node.h"
#include "composite/runtime/regions/together.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

// A search for a way back that has seen so many groups gives up, and its groups stay apart.
constexpr int kMostVisited = 4096;

// What a node adds to a region.
struct Part {
  bool grows = false;  // or else it is outside, or copied
  int nodes = 0, computing = 0, sums = 0;
};

Part PartOf(const Node& node, const RegionLoops& loops) {
  if (!node.IsOp()) return {};
  if (const RegionLoop* loop = loops.Find(node)) {
    return {true, loop->nodes + 1, loop->computing, loop->sums};
  }
  const RegionRole role = RoleOf(node);
  const int sums = role == RegionRole::kSums, computing = sums + (role == RegionRole::kComputes);
  return {role != RegionRole::kOutside && role != RegionRole::kCopied, 1, computing, sums};
}

// Nodes that are one so far, a group, and which groups each reads or waits for.
class Groups {
 public:
  Groups(const Graph& graph, const RegionLimits& limits)
      : limits_(limits), group_of_(graph.num_node_ids(), -1) {}

  // A group of these nodes. What they read was added before.
  void Add(const Together& together, const std::vector<Part>& parts) {
    const int own = static_cast<int>(groups_.size());
    Group group;
    for (const Node* node : together.nodes) group_of_[node->id()] = own;
    for (const Node* node : together.nodes) {
      for (const Edge* edge : node->in_edges()) {
        const int before = group_of_[edge->src()->id()];
        if (before != own && MayFollow(before)) group.before.insert(before);
      }
      const Part& part = parts[node->id()];
      group.size += part.nodes;
      group.computing += part.computing;
      group.sums += part.sums;
    }
    group.nodes = together.nodes;
    group.grows =
        together.may_be_inside && group.size <= limits_.nodes && group.sums <= limits_.sums;
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
    int size = 0;  // nodes, those of loops included
    int computing = 0;
    int sums = 0;
  };

  // Whether a way may lead to a group from another: none leads to a weight.
  bool MayFollow(int group) const { return groups_[group].grows || !groups_[group].before.empty(); }

  bool Fit(int a, int b) const {
    const Group &x = groups_[a], &y = groups_[b];
    return x.grows && y.grows && x.sums + y.sums <= limits_.sums &&
           x.size + y.size <= limits_.nodes &&
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
    group.size += other.size;
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
                                            const RegionLoops& loops,
                                            absl::FunctionRef<bool(const Node&)> may_join) {
  if (absl::c_any_of(graph.op_nodes(), [](const Node* node) { return node->IsControlFlow(); })) {
    return {};
  }
  std::vector<Part> parts(graph.num_node_ids());
  for (const Node* node : graph.nodes()) {
    Part& part = parts[node->id()];
    part = PartOf(*node, loops);
    part.grows = part.grows && may_join(*node);
  }
  Groups groups(graph, limits);
  std::vector<int> place(graph.num_node_ids(), 0);
  int next = 0;
  const auto grows = [&](const Node& node) { return parts[node.id()].grows; };
  for (const Together& together : InOrder(graph, grows)) {
    groups.Add(together, parts);
    for (const Node* node : together.nodes) {
      place[node->id()] = next++;
      groups.JoinProducers(*node);
    }
  }
  std::vector<std::vector<Node*>> regions = groups.Regions();
  for (std::vector<Node*>& region : regions) {
    absl::c_sort(region, [&](Node* a, Node* b) { return place[a->id()] < place[b->id()]; });
  }
  return regions;
}

}  // namespace composite
