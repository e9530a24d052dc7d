#include "composite/runtime/variables/update_node.h"

#include "absl/algorithm/container.h"

namespace composite {

using tensorflow::Edge;
using tensorflow::Node;

const Edge* EdgeOf(const Node& update, Given given) {
  const auto is_given = [&](const Edge* edge) { return edge->dst_input() == given; };
  return *absl::c_find_if(update.in_edges(), is_given);
}

Node* GivenTo(const Node& update, Given given) { return EdgeOf(update, given)->src(); }

bool IsOf(const Node& node, const Edge* variable) {
  const Edge* edge = nullptr;
  return node.num_inputs() > 0 && node.input_edge(0, &edge).ok() &&
         edge->src() == variable->src() && edge->src_output() == variable->src_output();
}

void MoveEdge(const Edge* edge, const NodeOutput& from, tensorflow::Graph* graph) {
  Node* const reader = edge->dst();
  const int input = edge->dst_input();
  graph->RemoveEdge(edge);
  graph->AddEdge(from.first, from.second, reader, input);
}

tensorflow::NodeBuilder Like(const Node& node, absl::string_view name, const char* op) {
  tensorflow::NodeBuilder builder(name, op);
  builder.Device(node.requested_device());
  return builder;
}

std::vector<Node*> WaitsFor(const Node& node) {
  std::vector<Node*> nodes;
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge() && !edge->src()->IsSource()) nodes.push_back(edge->src());
  }
  return nodes;
}

}  // namespace composite
