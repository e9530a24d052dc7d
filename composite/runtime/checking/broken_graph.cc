#include "composite/runtime/checking/broken_graph.h"

#include "absl/strings/str_cat.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

absl::Status GiveOtherDtype(Node* call, Graph* graph) {
  Node* other = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::NodeBuilder(graph->NewName("composite_broken"), "Const")
                         .Attr("dtype", tensorflow::DT_STRING)
                         .Attr("value", tensorflow::Tensor(tensorflow::DT_STRING, {}))
                         .Finalize(graph, &other));
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(call->input_edge(0, &edge));
  MoveEdge(edge, {other, 0}, graph);
  return absl::OkStatus();
}

absl::Status HaveWaitForItself(Node* call, Graph* graph) {
  Node* between = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::NodeBuilder(graph->NewName("composite_broken"), "NoOp")
                         .ControlInput(call)
                         .Finalize(graph, &between));
  graph->AddControlEdge(between, call);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Breaking> ParseBreaking(absl::string_view value) {
  if (value.empty()) return Breaking::kNothing;
  if (value == "input") return Breaking::kInput;
  if (value == "dtype") return Breaking::kDtype;
  if (value == "cycle") return Breaking::kCycle;
  if (value == "function") return Breaking::kFunction;
  return absl::InvalidArgumentError(
      absl::StrCat("how \"", value,
                   "\" is unknown; write one of \"input\", \"dtype\", \"cycle\", \"function\""));
}

Breaking& ThreadBreaking() {
  thread_local Breaking breaking = Breaking::kNothing;
  return breaking;
}

absl::Status Break(Breaking how, Graph* graph) {
  if (how == Breaking::kNothing) return absl::OkStatus();
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() != kFunctionOp) continue;
    const Edge* edge = nullptr;
    switch (how) {
      case Breaking::kInput:
        TF_RETURN_IF_ERROR(node->input_edge(0, &edge));
        graph->RemoveEdge(edge);
        break;
      case Breaking::kDtype:
        return GiveOtherDtype(node, graph);
      case Breaking::kCycle:
        return HaveWaitForItself(node, graph);
      default: {
        tensorflow::AttrValue function;
        function.mutable_func()->set_name(absl::StrCat(kRegionPrefix, "0"));
        node->ClearAttr(kFunctionAttr);
        node->AddAttr(kFunctionAttr, function);
      }
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace composite
