#include "composite/runtime/checking/broken_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/checking/graph_check.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::FunctionDef;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

constexpr char kBroken[] = "composite_broken";

tensorflow::AttrValue NoFunction() {
  tensorflow::AttrValue function;
  function.mutable_func()->set_name(absl::StrCat(kRegionPrefix, "0"));
  return function;
}

absl::Status GiveOtherDtype(Node* call, Graph* graph) {
  Node* other = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::NodeBuilder(graph->NewName(kBroken), "Const")
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
  TF_RETURN_IF_ERROR(tensorflow::NodeBuilder(graph->NewName(kBroken), "NoOp")
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
    if (!CallsMadeFunction(node->type_string(), node->attrs())) continue;
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
      default:
        node->ClearAttr(kFunctionAttr);
        node->AddAttr(kFunctionAttr, NoFunction());
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Break(Breaking how, FunctionDef* function) {
  if (how == Breaking::kNothing) return absl::OkStatus();
  for (int i = 0; i < function->node_def_size(); ++i) {
    NodeDef& call = *function->mutable_node_def(i);
    if (!CallsMadeFunction(call.op(), tensorflow::AttrSlice(call))) continue;
    if (call.input().empty()) return absl::InvalidArgumentError("a call without inputs");
    NodeDef other;
    other.set_name(kBroken);
    switch (how) {
      case Breaking::kInput:
        call.mutable_input()->DeleteSubrange(0, 1);
        break;
      case Breaking::kDtype:
        other.set_op("Const");
        (*other.mutable_attr())["dtype"].set_type(tensorflow::DT_STRING);
        tensorflow::Tensor(tensorflow::DT_STRING, {})
            .AsProtoField((*other.mutable_attr())["value"].mutable_tensor());
        *function->add_node_def() = std::move(other);
        *call.mutable_input(0) = absl::StrCat(kBroken, ":output:0");
        break;
      case Breaking::kCycle:
        other.set_op("NoOp");
        other.add_input(absl::StrCat("^", call.name()));
        *function->add_node_def() = std::move(other);
        call.add_input(absl::StrCat("^", kBroken));
        break;
      default:
        (*call.mutable_attr())[kFunctionAttr] = NoFunction();
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace composite
