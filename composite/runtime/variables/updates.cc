#include "composite/runtime/variables/updates.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "composite/runtime/variables/access_order.h"
#include "composite/runtime/variables/update_node.h"
#include "composite/runtime/variables/uses.h"
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
  bool subtracts;
};

// The addition that a node is; empty for others.
absl::optional<Addition> AdditionOf(Node* node) {
  const bool subtracts = node->type_string() == "AssignSubVariableOp";
  Addition found{node, nullptr, nullptr, tensorflow::DT_INVALID, subtracts};
  if ((!subtracts && node->type_string() != "AssignAddVariableOp") ||
      !node->input_edge(0, &found.variable).ok() || !node->input_edge(1, &found.operand).ok()) {
    return absl::nullopt;
  }
  found.dtype = found.operand->src()->output_type(found.operand->src_output());
  const bool has_update =
      found.dtype == tensorflow::DT_FLOAT || found.dtype == tensorflow::DT_HALF ||
      found.dtype == tensorflow::DT_BFLOAT16 || found.dtype == tensorflow::DT_DOUBLE;
  return has_update ? absl::make_optional(found) : absl::nullopt;
}

// What is added to what the variable held. AddN adds tensors of one shape alone, as TensorFlow's
// additions to variables do.
absl::StatusOr<Node*> SumOf(const Addition& addition, Node* before, Graph* graph) {
  tensorflow::NodeBuilder::NodeOut operand(addition.operand->src(), addition.operand->src_output());
  if (addition.subtracts) {
    Node* negated = nullptr;
    TF_RETURN_IF_ERROR(Like(*addition.node, graph->NewName("composite_negated"), "Neg")
                           .Input(operand)
                           .Finalize(graph, &negated));
    operand = negated;
  }
  const std::vector<tensorflow::NodeBuilder::NodeOut> terms = {before, operand};
  Node* sum = nullptr;
  TF_RETURN_IF_ERROR(Like(*addition.node, graph->NewName("composite_sum"), "AddN")
                         .Input(terms)
                         .Finalize(graph, &sum));
  return sum;
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

// Makes updates of the additions of a graph.
class Rewriting {
 public:
  Rewriting(AccessOrder* order, Graph* graph) : order_(*order), graph_(*graph) {}

  absl::Status Add(const Addition& addition) {
    const NodeOutput variable = OutputOf(*addition.variable);
    if (order_.IsWrittenMeanwhile(variable, *addition.node)) return absl::OkStatus();
    TF_ASSIGN_OR_RETURN(Node * before, ReadBefore(addition));
    TF_ASSIGN_OR_RETURN(Node * sum, SumOf(addition, before, &graph_));
    // Its name stays: a caller of the function may wait for it.
    Node* update = nullptr;
    TF_RETURN_IF_ERROR(Like(*addition.node, addition.node->name(), kUpdateOp)
                           .Input(variable.first, variable.second)
                           .Input(before)
                           .Input(sum)
                           .ControlInputs(WaitsFor(*addition.node))
                           .Finalize(&graph_, &update));
    if (!order_.Has(*before)) read_for_[before] = update;
    TakeThePlace(addition.node, update);
    order_.Replace(addition.node, update);
    graph_.RemoveNode(addition.node);
    updates_.push_back(update);
    return absl::OkStatus();
  }

  // Gives what reads an updated variable the sum: so a region need not end at the variable. Not
  // that of 16-bit floats: Adam divides a gradient by its size, and of one that cancels a kernel
  // may have another sign than TensorFlow's ops. No check of a kernel of all of it would pass.
  void ReadSums() {
    for (const Node* update : updates_) {
      if (IsMadeOfNarrow(*GivenTo(*update, kAfter))) continue;
      for (Node* read : ReadsOf(*update)) {
        if (!SeesSum(*read, *update)) continue;
        const std::vector<const Edge*> users(read->out_edges().begin(), read->out_edges().end());
        for (const Edge* edge : users) {
          if (edge->IsControlEdge()) continue;
          MoveEdge(edge, {GivenTo(*update, kAfter), 0}, &graph_);
        }
      }
    }
  }

  // Merges updates in succession, as those of an optimizer and of its weight decay.
  absl::Status MergeOverwritten() {
    for (Node*& update : updates_) {
      const auto overwrites = [&](const Node* by) {
        return by != nullptr && by != update && IsOverwritten(*update, *by);
      };
      const auto by = absl::c_find_if(updates_, overwrites);
      if (by == updates_.end()) continue;
      TF_RETURN_IF_ERROR(Merge(update, *by));
      update = nullptr;
    }
    return absl::OkStatus();
  }

 private:
  // What the variable holds when the addition runs: what a node reads that it waits for, if nobody
  // may write in between, or else a node of its own.
  absl::StatusOr<Node*> ReadBefore(const Addition& addition) {
    const NodeOutput variable = OutputOf(*addition.variable);
    for (Node* read : WaitsFor(*addition.node)) {
      const bool is_read = read->type_string() == kReadOp && IsOf(*read, addition.variable) &&
                           read->output_type(0) == addition.dtype && order_.Has(*read);
      if (is_read && !order_.IsWrittenBetween(variable, *read, *addition.node)) return read;
    }
    std::vector<Node*> waits_for = WaitsFor(*addition.node);
    for (Node* writer : order_.WritersBefore(variable, *addition.node)) {
      waits_for.push_back(writer);
    }
    Node* read = nullptr;
    TF_RETURN_IF_ERROR(Like(*addition.node, graph_.NewName("composite_read"), kReadOp)
                           .Input(variable.first, variable.second)
                           .ControlInputs(waits_for)
                           .Attr("dtype", addition.dtype)
                           .Finalize(&graph_, &read));
    return read;
  }

  // Who waits for a node waits for another one, too.
  void TakeThePlace(const Node* node, Node* by) {
    for (const Edge* edge : node->out_edges()) graph_.AddControlEdge(by, edge->dst());
  }

  // The nodes that read the variable of an update.
  std::vector<Node*> ReadsOf(const Node& update) const {
    const Edge* variable = EdgeOf(update, kVariable);
    std::vector<Node*> reads;
    for (const Edge* edge : variable->src()->out_edges()) {
      const bool has_it = edge->src_output() == variable->src_output();
      if (has_it && edge->dst()->type_string() == kReadOp) reads.push_back(edge->dst());
    }
    return reads;
  }

  // Whether a node reads what an update wrote, and no other node.
  bool SeesSum(const Node& read, const Node& update) const {
    const auto read_for = read_for_.find(&read);
    const Node& at = read_for == read_for_.end() ? read : *read_for->second;
    return order_.Has(at) && order_.IsBefore(update, at) &&
           !order_.IsWrittenBetween(OutputOf(*EdgeOf(update, kVariable)), update, at);
  }

  // Whether nobody sees what an update wrote before another one writes.
  bool IsOverwritten(const Node& update, const Node& by) const {
    const auto is_control = [](const Edge* edge) { return edge->IsControlEdge(); };
    const auto counts = [&](const Node& node) {
      return node.type_string() != kReadOp || !absl::c_all_of(node.out_edges(), is_control);
    };
    return GivenTo(by, kBefore) == GivenTo(update, kAfter) && order_.IsBefore(update, by) &&
           !order_.IsAccessedBetween(OutputOf(*EdgeOf(update, kVariable)), update, by, counts);
  }

  // Has the second of two updates in succession do both.
  absl::Status Merge(Node* update, Node* by) {
    Node *before = GivenTo(*update, kBefore), *place = nullptr;
    MoveEdge(EdgeOf(*by, kBefore), {before, 0}, &graph_);
    // Who waits for the first waits for what it waited for.
    std::vector<Node*> waits_for = WaitsFor(*update);
    waits_for.push_back(before);
    TF_RETURN_IF_ERROR(
        Like(*update, update->name(), "NoOp").ControlInputs(waits_for).Finalize(&graph_, &place));
    TakeThePlace(update, place);
    order_.Replace(update, nullptr);
    graph_.RemoveNode(update);
    return absl::OkStatus();
  }

  AccessOrder& order_;
  Graph& graph_;
  std::vector<Node*> updates_;                              // null: merged with another one
  absl::flat_hash_map<const Node*, const Node*> read_for_;  // the updates that reads are made for
};

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

absl::Status MakeUpdates(MayUpdate may_update, const VariableFacts& facts, Graph* graph) {
  std::vector<Addition> additions;
  for (Node* node : graph->op_nodes()) {
    if (node->IsControlFlow()) return absl::OkStatus();  // what waits may never run
    const absl::optional<Addition> addition = AdditionOf(node);
    if (addition && may_update(*node, *addition->operand->src())) additions.push_back(*addition);
  }
  if (additions.empty()) return absl::OkStatus();
  VariableUses uses(facts.library);
  const auto order = AccessOrder::Of(*graph, &uses, facts.may_have_twice);
  if (order == nullptr) return absl::OkStatus();
  Rewriting rewriting(order.get(), graph);
  for (const Addition& addition : additions) TF_RETURN_IF_ERROR(rewriting.Add(addition));
  rewriting.ReadSums();
  TF_RETURN_IF_ERROR(rewriting.MergeOverwritten());
  TF_RETURN_IF_ERROR(order->Restore(graph));
  return ReadToUpdate(graph);
}

}  // namespace composite
