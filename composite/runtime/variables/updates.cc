#include "composite/runtime/variables/updates.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

constexpr size_t kMostLookedAt = 256;  // nodes that make what is added

// An addition to a variable.
struct Addition {
  Node* node;
  const Edge* variable;
  const Edge* operand;
  DataType dtype;
  const char* op;  // that adds
};

const char* OpOf(const Node& node) {
  if (node.type_string() == "AssignAddVariableOp") return "AddV2";
  return node.type_string() == "AssignSubVariableOp" ? "Sub" : nullptr;
}

// What the variable holds when the addition runs. A read that it waits for is of that: whoever
// writes in between waits for the read, and the addition for the writer alone.
absl::StatusOr<Node*> ReadBefore(const Addition& addition, Graph* graph) {
  for (const Edge* edge : addition.node->in_edges()) {
    Node* read = edge->src();
    const bool is_read = edge->IsControlEdge() && read->type_string() == kReadOp;
    if (is_read && IsOf(*read, addition.variable)) return read;
  }
  Node* read = nullptr;
  TF_RETURN_IF_ERROR(Like(*addition.node, graph->NewName("composite_read"), kReadOp)
                         .Input(addition.variable->src(), addition.variable->src_output())
                         .ControlInputs(WaitsFor(*addition.node))
                         .Attr("dtype", addition.dtype)
                         .Finalize(graph, &read));
  return read;
}

// The addition that a node is; empty for others.
absl::optional<Addition> AdditionOf(Node* node) {
  Addition found{node, nullptr, nullptr, tensorflow::DT_INVALID, OpOf(*node)};
  if (found.op == nullptr || !node->input_edge(0, &found.variable).ok() ||
      !node->input_edge(1, &found.operand).ok()) {
    return absl::nullopt;
  }
  found.dtype = found.operand->src()->output_type(found.operand->src_output());
  const bool has_update =
      found.dtype == tensorflow::DT_FLOAT || found.dtype == tensorflow::DT_HALF ||
      found.dtype == tensorflow::DT_BFLOAT16 || found.dtype == tensorflow::DT_DOUBLE;
  return has_update ? absl::make_optional(found) : absl::nullopt;
}

absl::StatusOr<Node*> MakeUpdate(const Addition& addition, Graph* graph) {
  TF_ASSIGN_OR_RETURN(Node * before, ReadBefore(addition, graph));
  Node *sum = nullptr, *update = nullptr;
  TF_RETURN_IF_ERROR(Like(*addition.node, graph->NewName("composite_sum"), addition.op)
                         .Input(before)
                         .Input(addition.operand->src(), addition.operand->src_output())
                         .Finalize(graph, &sum));
  // Its name stays: a caller of the function may wait for it.
  TF_RETURN_IF_ERROR(Like(*addition.node, addition.node->name(), kUpdateOp)
                         .Input(addition.variable->src(), addition.variable->src_output())
                         .Input(before)
                         .Input(sum)
                         .ControlInputs(WaitsFor(*addition.node))
                         .Finalize(graph, &update));
  for (const Edge* edge : addition.node->out_edges()) graph->AddControlEdge(update, edge->dst());
  graph->RemoveNode(addition.node);
  return update;
}

bool Waits(const Node& node, const Node& before) {
  const auto is_before = [&](const Edge* edge) { return edge->src() == &before; };
  return absl::c_any_of(node.in_edges(), is_before);
}

// The other nodes that have the variable of an update.
std::vector<Node*> OthersOf(const Node& update) {
  const Edge* variable = EdgeOf(update, kVariable);
  std::vector<Node*> others;
  for (const Edge* edge : variable->src()->out_edges()) {
    const bool has_it = edge->src_output() == variable->src_output();
    if (has_it && edge->dst() != &update) others.push_back(edge->dst());
  }
  return others;
}

// Whether a read sees what an update wrote: it waits for that, and each other node that may write
// waits for the read, or the update for it.
bool SeesSum(const Node& read, const Node& update, const std::vector<Node*>& others) {
  const auto is_apart = [&](const Node* one) {
    return one->type_string() == kReadOp || Waits(*one, read) || Waits(update, *one);
  };
  return read.type_string() == kReadOp && Waits(read, update) && absl::c_all_of(others, is_apart);
}

bool IsNarrow(DataType dtype) {
  return dtype == tensorflow::DT_HALF || dtype == tensorflow::DT_BFLOAT16;
}

// Whether a value is made of 16-bit floats, as a gradient of mixed precision.
bool IsMadeOfNarrow(const Node& node) {
  absl::flat_hash_set<const Node*> seen = {&node};
  std::vector<const Node*> pending = {&node};
  while (!pending.empty() && seen.size() < kMostLookedAt) {
    const Node* one = pending.back();
    pending.pop_back();
    if (absl::c_any_of(one->input_types(), IsNarrow)) return true;
    for (const Edge* edge : one->in_edges()) {
      const bool is_made = edge->src()->IsOp() && edge->src()->type_string() != kReadOp;
      if (is_made && seen.insert(edge->src()).second) pending.push_back(edge->src());
    }
  }
  return false;
}

// Gives what reads an updated variable the sum: so a region need not end at the variable. Not that
// of 16-bit floats: Adam divides a gradient by its size, and of one that cancels a kernel may have
// another sign than TensorFlow's ops. No check of a kernel of all of it would pass.
absl::Status ReadSum(const Node& update, Graph* graph) {
  if (IsMadeOfNarrow(*GivenTo(update, kAfter))) return absl::OkStatus();
  const std::vector<Node*> others = OthersOf(update);
  for (Node* read : others) {
    if (!SeesSum(*read, update, others)) continue;
    const std::vector<const Edge*> users(read->out_edges().begin(), read->out_edges().end());
    for (const Edge* edge : users) {
      if (edge->IsControlEdge()) continue;
      TF_RETURN_IF_ERROR(
          graph->UpdateEdge(GivenTo(update, kAfter), 0, edge->dst(), edge->dst_input()));
    }
  }
  return absl::OkStatus();
}

// Whether nobody sees what an update wrote before another one writes.
bool IsOverwritten(const Node& update, const Node& by) {
  const auto is_control = [](const Edge* edge) { return edge->IsControlEdge(); };
  const auto is_apart = [&](const Node* one) {
    const bool is_unread =
        one->type_string() == kReadOp && absl::c_all_of(one->out_edges(), is_control);
    return one == &by || is_unread || Waits(update, *one) || Waits(*one, by);
  };
  return GivenTo(by, kBefore) == GivenTo(update, kAfter) && Waits(by, update) &&
         absl::c_all_of(OthersOf(update), is_apart);
}

// Has the second of two updates in succession do both.
absl::Status Merge(Node* update, Node* by, Graph* graph) {
  Node *before = GivenTo(*update, kBefore), *place = nullptr;
  TF_RETURN_IF_ERROR(graph->UpdateEdge(before, 0, by, kBefore));
  // Who waits for the first waits for what it waited for.
  std::vector<Node*> waits_for = WaitsFor(*update);
  waits_for.push_back(before);
  TF_RETURN_IF_ERROR(
      Like(*update, update->name(), "NoOp").ControlInputs(waits_for).Finalize(graph, &place));
  for (const Edge* edge : update->out_edges()) graph->AddControlEdge(place, edge->dst());
  graph->RemoveNode(update);
  return absl::OkStatus();
}

// Merges updates in succession, as those of an optimizer and of its weight decay.
absl::Status MergeOverwritten(std::vector<Node*> updates, Graph* graph) {
  for (Node*& update : updates) {
    const auto overwrites = [&](const Node* by) {
      return by != nullptr && by != update && IsOverwritten(*update, *by);
    };
    const auto by = absl::c_find_if(updates, overwrites);
    if (by == updates.end()) continue;
    TF_RETURN_IF_ERROR(Merge(update, *by, graph));
    update = nullptr;
  }
  return absl::OkStatus();
}

// Has reads know their variables, so that a kernel may write there.
absl::Status ReadToUpdate(Graph* graph) {
  std::vector<Node*> updates;
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() == kUpdateOp) updates.push_back(node);
  }
  for (const Node* update : updates) {
    Node* const read = GivenTo(*update, kBefore);
    const Edge* variable = EdgeOf(*update, kVariable);
    if (read->type_string() != kReadOp || !IsOf(*read, variable)) continue;
    Node* other = nullptr;
    TF_RETURN_IF_ERROR(Like(*read, read->name(), kReadToUpdateOp)
                           .Input(variable->src(), variable->src_output())
                           .ControlInputs(WaitsFor(*read))
                           .Attr("dtype", read->output_type(0))
                           .Finalize(graph, &other));
    for (const Edge* edge : read->out_edges()) {
      graph->AddEdge(other, edge->src_output(), edge->dst(), edge->dst_input());
    }
    graph->RemoveNode(read);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeUpdates(MayUpdate may_update, Graph* graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph->op_nodes()) nodes.push_back(node);
  std::vector<Node*> updates;
  for (Node* node : nodes) {
    const absl::optional<Addition> addition = AdditionOf(node);
    if (addition && may_update(*node, *addition->operand->src())) {
      TF_ASSIGN_OR_RETURN(updates.emplace_back(), MakeUpdate(*addition, graph));
    }
  }
  for (const Node* update : updates) TF_RETURN_IF_ERROR(ReadSum(*update, graph));
  TF_RETURN_IF_ERROR(MergeOverwritten(std::move(updates), graph));
  return ReadToUpdate(graph);
}

}  // namespace composite
