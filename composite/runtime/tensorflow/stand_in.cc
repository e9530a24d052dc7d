#include "composite/runtime/tensorflow/stand_in.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

NodeDef StandIn(const std::string& node, const std::string& device,
                absl::Span<const tensorflow::DataType> outputs) {
  NodeDef def;
  def.set_name(node);
  def.set_device(device);
  def.set_op(outputs.empty() ? "NoOp" : "IdentityN");
  if (outputs.empty()) return def;
  auto* list = (*def.mutable_attr())["T"].mutable_list();
  for (tensorflow::DataType type : outputs) list->add_type(type);
  return def;
}

absl::Status PutInPlace(Graph* graph, Node* computing, Node* node) {
  NodeDef def = StandIn(node->name(), node->requested_device(), node->output_types());
  for (int i = 0; i < node->num_outputs(); ++i) {
    def.add_input(absl::StrCat(computing->name(), ":", i));
  }
  TF_ASSIGN_OR_RETURN(Node * stand_in, graph->AddNode(std::move(def)));
  for (int i = 0; i < node->num_outputs(); ++i) graph->AddEdge(computing, i, stand_in, i);
  if (node->num_outputs() == 0) graph->AddControlEdge(computing, stand_in);
  for (const Edge* edge : node->in_edges()) {
    if (edge->IsControlEdge()) graph->AddControlEdge(edge->src(), stand_in);
  }
  for (const Edge* edge : node->out_edges()) {
    graph->AddEdge(stand_in, edge->src_output(), edge->dst(), edge->dst_input());
  }
  graph->RemoveNode(node);
  return absl::OkStatus();
}

}  // namespace composite
