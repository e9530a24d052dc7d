#include "composite/runtime/regions/cleanup.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

bool IsRead(const Node& node) {
  return absl::c_any_of(node.out_edges(), [](const Edge* edge) { return !edge->dst()->IsSink(); });
}

absl::StatusOr<Node*> ShapeOf(const Node& node, int input, Graph* graph) {
  const Edge* of = nullptr;
  TF_RETURN_IF_ERROR(node.input_edge(input, &of));
  tensorflow::DataType dtype = tensorflow::DT_INVALID, type = tensorflow::DT_INVALID;
  TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node.attrs(), "T", &dtype));
  TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node.attrs(), "out_type", &type));
  Node* shape = nullptr;
  tensorflow::NodeBuilder builder(graph->NewName("composite_shape"), "Shape");
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge() && !edge->src()->IsSource()) builder.ControlInput(edge->src());
  }
  builder.Input(of->src(), of->src_output()).Attr("T", dtype).Attr("out_type", type);
  TF_RETURN_IF_ERROR(builder.Device(node.requested_device()).Finalize(graph, &shape));
  return shape;
}

absl::Status Split(const Node& node, Graph* graph) {
  const std::vector<const Edge*> readers(node.out_edges().begin(), node.out_edges().end());
  std::vector<Node*> shapes(node.num_outputs(), nullptr);
  for (const Edge* reader : readers) {
    if (reader->IsControlEdge()) continue;
    Node*& shape = shapes[reader->src_output()];
    if (shape == nullptr) {
      TF_ASSIGN_OR_RETURN(shape, ShapeOf(node, reader->src_output(), graph));
    }
    MoveEdge(reader, {shape, 0}, graph);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SplitShapes(Graph* graph) {
  std::vector<const Node*> nodes;
  for (const Node* node : graph->op_nodes()) {
    if (node->type_string() == "ShapeN") nodes.push_back(node);
  }
  for (const Node* node : nodes) TF_RETURN_IF_ERROR(Split(*node, graph));
  return absl::OkStatus();
}

absl::flat_hash_set<std::string> Awaited(const tensorflow::FunctionDef& function) {
  absl::flat_hash_set<std::string> names;
  for (const auto& [name, node] : function.control_ret()) names.insert(node);
  return names;
}

void RemoveUnread(const tensorflow::FunctionDef& function, Graph* graph) {
  const absl::flat_hash_set<std::string> awaited = Awaited(function);
  const auto is_unread = [&](const Node& node) {
    return !IsRead(node) && TraitsOf(node.type_string()).work != Work::kUnknown &&
           !node.op_def().is_stateful() && !awaited.contains(node.name());
  };
  std::vector<Node*> unread;
  for (Node* node : graph->op_nodes()) {
    if (is_unread(*node)) unread.push_back(node);
  }
  while (!unread.empty()) {
    Node* node = unread.back();
    unread.pop_back();
    std::vector<Node*> before;
    for (const Edge* edge : node->in_edges()) before.push_back(edge->src());
    graph->RemoveNode(node);
    absl::c_sort(before, [](Node* a, Node* b) { return a->id() < b->id(); });
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (Node* source : before) {
      if (source->IsOp() && is_unread(*source)) unread.push_back(source);
    }
  }
}

}  // namespace composite
