#include "composite/runtime/checking/optimizer_reads.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

// ArgMin, MaxPool3D; Maximum as well, at which nothing has to be done.
bool IsReduction(const Node& node) {
  return absl::StrContains(node.type_string(), "Max") ||
         absl::StrContains(node.type_string(), "Min");
}

// Whether the first input of a node that `is_one` is a value of `node`. TensorFlow removes
// identities before it looks.
bool IsFirstInput(const Node& node, absl::FunctionRef<bool(const Node&)> is_one) {
  return absl::c_any_of(node.out_edges(), [&](const Edge* edge) {
    if (edge->IsControlEdge() || edge->dst_input() != 0 || !edge->dst()->IsOp()) return false;
    return edge->dst()->IsIdentity() ? IsFirstInput(*edge->dst(), is_one) : is_one(*edge->dst());
  });
}

// Whether a reader is a function of one value, and a reduction reads its result.
bool IsReducedFunction(const Node& node) {
  return node.num_inputs() == 1 && IsFirstInput(node, IsReduction);
}

bool IsReadElsewhere(const Edge& edge) {
  if (edge.IsControlEdge() || edge.src_output() == 0 || !edge.dst()->IsOp()) return false;
  const Node& reader = *edge.dst();
  return reader.IsIdentity() ? IsFirstInput(reader, IsReducedFunction) : IsReducedFunction(reader);
}

}  // namespace

absl::Status KeepOutputs(Node* node, Graph* graph) {
  absl::flat_hash_map<int, Node*> kept;
  const std::vector<const Edge*> edges(node->out_edges().begin(), node->out_edges().end());
  for (const Edge* edge : edges) {
    if (!IsReadElsewhere(*edge)) continue;
    Node*& own = kept[edge->src_output()];
    if (own == nullptr) {
      // It takes any shape. An Identity would be removed first.
      TF_RETURN_IF_ERROR(Like(*node, graph->NewName("composite_output"), "EnsureShape")
                             .Input(node, edge->src_output())
                             .Attr("shape", tensorflow::PartialTensorShape())
                             .Finalize(graph, &own));
    }
    MoveEdge(edge, {own, 0}, graph);
  }
  return absl::OkStatus();
}

}  // namespace composite
