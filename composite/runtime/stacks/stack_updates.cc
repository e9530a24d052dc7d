#include "composite/runtime/stacks/stack_updates.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "composite/runtime/stacks/picks.h"
#include "composite/runtime/stacks/stack.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeBuilder;
using Groups = std::vector<std::vector<int>>;  // of parts, by their numbers

// Which of the parts' updates a node is made of or waits for.
std::vector<int> NeededBy(const Node& node, const absl::flat_hash_map<const Node*, int>& parts) {
  std::vector<int> found;
  absl::flat_hash_set<const Node*> seen;
  std::vector<const Node*> pending = {&node};
  while (!pending.empty()) {
    const Node* one = pending.back();
    pending.pop_back();
    for (const Edge* edge : one->in_edges()) {
      const Node* before = edge->src();
      if (!seen.insert(before).second) continue;
      const auto part = parts.find(before);
      if (part != parts.end()) found.push_back(part->second);
      pending.push_back(before);
    }
  }
  return found;
}

// The parts in their order, those together that do not need each other. Nothing if one needs itself
// or a later one.
std::optional<Groups> GroupsOf(const Stack& stack) {
  absl::flat_hash_map<const Node*, int> numbers;
  for (size_t k = 0; k < stack.parts.size(); ++k) {
    if (!numbers.emplace(stack.parts[k].update, k).second) return std::nullopt;
  }
  Groups groups(1);
  for (int k = 0; k < static_cast<int>(stack.parts.size()); ++k) {
    const std::vector<int> needed = NeededBy(*stack.parts[k].update, numbers);
    if (absl::c_any_of(needed, [k](int other) { return other >= k; })) return std::nullopt;
    std::vector<int>& last = groups.back();
    if (absl::c_any_of(needed, [&](int other) { return absl::c_linear_search(last, other); })) {
      groups.emplace_back();
    }
    groups.back().push_back(k);
  }
  return groups;
}

// The dims of the tensor along which its parts are elements: in a stack they are those of what the
// picks before leave.
std::vector<int64_t> AxesOfWhole(const Stack& stack) {
  std::vector<int64_t> whole;
  for (int64_t axis : stack.axes) {
    std::vector<int64_t> before = whole;
    absl::c_sort(before);
    for (int64_t gone : before) axis += gone <= axis;
    whole.push_back(axis);
  }
  return whole;
}

class Rewriting {
 public:
  Rewriting(const Stack& stack, const Groups& groups, Node* whole, Graph* graph)
      : stack_(stack), groups_(groups), whole_(whole), graph_(*graph) {
    for (const StackPart& part : stack.parts) {
      own_.insert(part.update);
      own_.insert(part.packs.begin(), part.packs.end());
    }
  }

  absl::Status Run() {
    std::vector<NodeOutput> states;  // the tensor after each part's update
    NodeOutput state = stack_.of;
    for (const std::vector<int>& group : groups_) {
      TF_ASSIGN_OR_RETURN(Node * updated, Updated(state, group));
      state = {updated, 0};
      states.insert(states.end(), group.size(), state);
    }
    for (size_t k = 0; k < stack_.parts.size(); ++k) {
      const StackPart& part = stack_.parts[k];
      TF_RETURN_IF_ERROR(MoveReaders(part.update, states[k], part.picks));
      // A stack of parts is there once its last one is updated.
      for (size_t depth = 1; depth < part.packs.size(); ++depth) {
        const bool is_last =
            k + 1 == stack_.parts.size() || stack_.parts[k + 1].packs[depth] != part.packs[depth];
        if (!is_last) continue;
        const std::vector<Node*> picks(part.picks.begin(), part.picks.begin() + depth);
        TF_RETURN_IF_ERROR(MoveReaders(part.packs[depth], states[k], picks));
      }
    }
    return MoveReaders(whole_, state, {});
  }

 private:
  // The node that updates the parts of a group.
  absl::StatusOr<Node*> Updated(const NodeOutput& state, const std::vector<int>& group) {
    std::vector<NodeBuilder::NodeOut> updates, starts;
    const std::vector<int64_t> axes = AxesOfWhole(stack_);
    std::map<int64_t, int64_t> sizes;  // in the order of the axes
    for (size_t i = 0; i < axes.size(); ++i) sizes[axes[i]] = stack_.sizes[i];
    std::vector<int64_t> places;
    for (int number : group) {
      const StackPart& part = stack_.parts[number];
      std::vector<const Edge*> edges;
      TF_RETURN_IF_ERROR(part.update->input_edges(&edges));
      updates.emplace_back(edges[1]->src(), edges[1]->src_output());
      starts.emplace_back(edges[2]->src(), edges[2]->src_output());
      std::map<int64_t, int64_t> own;
      for (size_t i = 0; i < axes.size(); ++i) own[axes[i]] = PickOf(*part.picks[i])->place;
      for (const auto& [axis, place] : own) places.push_back(place);
    }
    std::vector<int64_t> sorted_axes, sorted_sizes;
    for (const auto& [axis, size] : sizes) {
      sorted_axes.push_back(axis);
      sorted_sizes.push_back(size);
    }
    NodeBuilder builder =
        Like(*whole_, graph_.NewName("composite_update_slices"), "CompositeUpdateSlices");
    builder.Input(state.first, state.second).Input(updates).Input(starts);
    builder.Attr("axes", sorted_axes).Attr("sizes", sorted_sizes).Attr("places", places);
    Node* made = nullptr;
    TF_RETURN_IF_ERROR(builder.Finalize(&graph_, &made));
    return made;
  }

  // Has all who read a node, but for those of the stack, read a part of the tensor.
  absl::Status MoveReaders(Node* node, const NodeOutput& state, const std::vector<Node*>& picks) {
    const std::vector<const Edge*> edges(node->out_edges().begin(), node->out_edges().end());
    for (const Edge* edge : edges) {
      if (edge->IsControlEdge() || own_.contains(edge->dst())) continue;
      TF_ASSIGN_OR_RETURN(const NodeOutput part, Picked(state, picks));
      MoveEdge(edge, part, &graph_);
    }
    return absl::OkStatus();
  }

  // A part of a tensor, picked as these nodes do.
  absl::StatusOr<NodeOutput> Picked(NodeOutput of, const std::vector<Node*>& picks) {
    for (Node* pick : picks) {
      Node*& made = picked_[{of.first, pick}];
      if (made == nullptr) {
        tensorflow::NodeDef def = pick->def();
        def.set_name(graph_.NewName(pick->name()));
        def.clear_input();
        TF_ASSIGN_OR_RETURN(made, graph_.AddNode(def));
        std::vector<const Edge*> edges;
        TF_RETURN_IF_ERROR(pick->input_edges(&edges));
        graph_.AddEdge(of.first, of.second, made, 0);
        for (int i = 1; i < pick->num_inputs(); ++i) {
          graph_.AddEdge(edges[i]->src(), edges[i]->src_output(), made, i);
        }
      }
      of = {made, 0};
    }
    return of;
  }

  const Stack& stack_;
  const Groups& groups_;
  Node* const whole_;
  Graph& graph_;
  absl::flat_hash_set<const Node*> own_;  // the nodes of the stack
  absl::flat_hash_map<std::pair<Node*, Node*>, Node*> picked_;
};

// Whether the nodes' elements can be copied, all on one device.
bool MayUpdate(const Stack& stack, const Node& whole) {
  if (!tensorflow::DataTypeCanUseMemcpy(whole.output_type(0))) return false;
  const tensorflow::DataType index = stack.parts[0].update->input_type(2);
  return absl::c_all_of(stack.parts, [&](const StackPart& part) {
    return part.update->input_type(2) == index &&
           part.update->requested_device() == whole.requested_device();
  });
}

}  // namespace

absl::Status MakeStackUpdates(Graph* graph) {
  std::vector<Node*> order;  // those that read before those that are read: whole stacks first
  tensorflow::GetPostOrder(*graph, &order, tensorflow::NodeComparatorName());
  absl::flat_hash_set<const Node*> done;
  for (Node* node : order) {
    if (node->type_string() != "Pack" || done.contains(node)) continue;
    const std::optional<Stack> stack = StackOf(node);
    if (!stack) continue;
    for (const StackPart& part : stack->parts) done.insert(part.packs.begin(), part.packs.end());
    const std::optional<Groups> groups = GroupsOf(*stack);
    if (!groups || !MayUpdate(*stack, *node)) continue;
    TF_RETURN_IF_ERROR(Rewriting(*stack, *groups, node, graph).Run());
  }
  return absl::OkStatus();
}

}  // namespace composite
