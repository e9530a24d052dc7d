#include "composite/runtime/variables/updates.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

constexpr char kReadOp[] = "ReadVariableOp";
constexpr char kUpdateOp[] = "CompositeUpdateVariable";

// An addition to a variable.
struct Addition {
  Node* node;
  const Edge* variable;
  const Edge* operand;
  tensorflow::DataType dtype;
  const char* op;  // that adds
};

tensorflow::NodeBuilder Like(const Addition& addition, absl::string_view name, const char* op) {
  tensorflow::NodeBuilder builder(name, op);
  builder.Device(addition.node->requested_device());
  return builder;
}

std::vector<Node*> WaitsFor(const Node& node) {
  std::vector<Node*> nodes;
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge() && !edge->src()->IsSource()) nodes.push_back(edge->src());
  }
  return nodes;
}

const char* OpOf(const Node& node) {
  if (node.type_string() == "AssignAddVariableOp") return "AddV2";
  return node.type_string() == "AssignSubVariableOp" ? "Sub" : nullptr;
}

bool IsOf(const Node& node, const Edge* variable) {
  const Edge* edge = nullptr;
  return node.num_inputs() > 0 && node.input_edge(0, &edge).ok() &&
         edge->src() == variable->src() && edge->src_output() == variable->src_output();
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
  TF_RETURN_IF_ERROR(Like(addition, graph->NewName("composite_read"), kReadOp)
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

// The reads that see the sum: those that wait for the addition, where all other nodes of the graph
// that have the variable read it too.
std::vector<Node*> ReadsAfter(const Addition& addition) {
  std::vector<Node*> reads;
  for (const Edge* edge : addition.variable->src()->out_edges()) {
    Node* user = edge->dst();
    if (edge->src_output() != addition.variable->src_output() || user == addition.node) continue;
    if (user->type_string() != kReadOp) return {};
    const auto& before = user->in_edges();
    const auto is_addition = [&](const Edge* one) { return one->src() == addition.node; };
    if (std::any_of(before.begin(), before.end(), is_addition)) reads.push_back(user);
  }
  return reads;
}

absl::Status ReadSum(const std::vector<Node*>& reads, Node* sum, Graph* graph) {
  for (Node* read : reads) {
    const std::vector<const Edge*> users(read->out_edges().begin(), read->out_edges().end());
    for (const Edge* edge : users) {
      if (edge->IsControlEdge()) continue;
      TF_RETURN_IF_ERROR(graph->UpdateEdge(sum, 0, edge->dst(), edge->dst_input()));
    }
  }
  return absl::OkStatus();
}

absl::Status MakeUpdate(const Addition& addition, Graph* graph) {
  const std::vector<Node*> reads = ReadsAfter(addition);
  TF_ASSIGN_OR_RETURN(Node * before, ReadBefore(addition, graph));
  Node *sum = nullptr, *update = nullptr;
  TF_RETURN_IF_ERROR(Like(addition, graph->NewName("composite_sum"), addition.op)
                         .Input(before)
                         .Input(addition.operand->src(), addition.operand->src_output())
                         .Finalize(graph, &sum));
  // Its name stays: a caller of the function may wait for it.
  TF_RETURN_IF_ERROR(Like(addition, addition.node->name(), kUpdateOp)
                         .Input(addition.variable->src(), addition.variable->src_output())
                         .Input(before)
                         .Input(sum)
                         .ControlInputs(WaitsFor(*addition.node))
                         .Finalize(graph, &update));
  for (const Edge* edge : addition.node->out_edges()) graph->AddControlEdge(update, edge->dst());
  graph->RemoveNode(addition.node);
  return ReadSum(reads, sum, graph);
}

}  // namespace

absl::Status MakeUpdates(MayUpdate may_update, Graph* graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph->op_nodes()) nodes.push_back(node);
  for (Node* node : nodes) {
    const absl::optional<Addition> addition = AdditionOf(node);
    if (addition && may_update(*node, *addition->operand->src())) {
      TF_RETURN_IF_ERROR(MakeUpdate(*addition, graph));
    }
  }
  return absl::OkStatus();
}

}  // namespace composite
