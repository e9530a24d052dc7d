// Nodes that read and update variables, and the values between nodes.
#ifndef COMPOSITE_RUNTIME_VARIABLES_UPDATE_NODE_H_
#define COMPOSITE_RUNTIME_VARIABLES_UPDATE_NODE_H_

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace composite {

using NodeOutput = std::pair<tensorflow::Node*, int>;  // a node and one of its outputs

// The output that an edge reads.
inline NodeOutput OutputOf(const tensorflow::Edge& edge) { return {edge.src(), edge.src_output()}; }

inline constexpr char kReadOp[] = "ReadVariableOp";
inline constexpr char kReadToUpdateOp[] = "CompositeReadVariable";
inline constexpr char kUpdateOp[] = "CompositeUpdateVariable";

// What an update is given, by its inputs.
enum Given { kVariable, kBefore, kAfter };

const tensorflow::Edge* EdgeOf(const tensorflow::Node& update, Given given);
tensorflow::Node* GivenTo(const tensorflow::Node& update, Given given);

// Whether a node has the variable that an edge has.
bool IsOf(const tensorflow::Node& node, const tensorflow::Edge* variable);

// The nodes that it waits for by control edges.
std::vector<tensorflow::Node*> WaitsFor(const tensorflow::Node& node);

// Has an edge come from another value. Not Graph::UpdateEdge, which writes to an input of the
// reader's NodeDef: one whose edges were added by themselves has none.
void MoveEdge(const tensorflow::Edge* edge, const NodeOutput& from, tensorflow::Graph* graph);

// A node on the device that another one asks for.
tensorflow::NodeBuilder Like(const tensorflow::Node& node, absl::string_view name, const char* op);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_UPDATE_NODE_H_
