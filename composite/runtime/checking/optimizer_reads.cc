#include "composite/runtime/checking/optimizer_reads.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/program/signature.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::FunctionDef;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

constexpr char kIdentity[] = "Identity";

// ArgMin, MaxPool3D; Maximum as well, at which nothing has to be done.
bool IsReduction(absl::string_view op) {
  return absl::StrContains(op, "Max") || absl::StrContains(op, "Min");
}

// Readers as a graph has them, and as a function has them.
const std::string& OpOf(const Node& node) { return node.type_string(); }
int InputsOf(const Node& node) { return node.num_inputs(); }

template <typename Test>
bool AnyFirstReader(const Node& node, const Test& test) {
  return absl::c_any_of(node.out_edges(), [&](const Edge* edge) {
    return !edge->IsControlEdge() && edge->dst_input() == 0 && edge->dst()->IsOp() &&
           test(*edge->dst());
  });
}

// Identities in a row that are looked through. In a function that was loaded and is damaged, they
// may come to themselves.
constexpr int kMostIdentities = 100;

// Whether the first input of a node that `is_one` is a value of `node`. TensorFlow removes
// identities before it looks.
template <typename Reader, typename Test>
bool IsFirstInput(const Reader& node, const Test& is_one, int identities = kMostIdentities) {
  return AnyFirstReader(node, [&](const Reader& reader) {
    if (OpOf(reader) != kIdentity) return is_one(reader);
    return identities > 0 && IsFirstInput(reader, is_one, identities - 1);
  });
}

// Whether a reader is a function of one value, and a reduction reads its result.
template <typename Reader>
bool IsReducedFunction(const Reader& node) {
  return InputsOf(node) == 1 &&
         IsFirstInput(node, [](const Reader& reader) { return IsReduction(OpOf(reader)); });
}

template <typename Reader>
bool ReadsElsewhere(const Reader& reader) {
  return OpOf(reader) == kIdentity ? IsFirstInput(reader, IsReducedFunction<Reader>)
                                   : IsReducedFunction(reader);
}

bool IsReadElsewhere(const Edge& edge) {
  return !edge.IsControlEdge() && edge.src_output() > 0 && edge.dst()->IsOp() &&
         ReadsElsewhere(*edge.dst());
}

// A node of a function, with those whose first input is a value of it.
struct FunctionNode {
  const NodeDef* def;
  int inputs = 0;
  std::vector<const FunctionNode*> first_readers;
};

const std::string& OpOf(const FunctionNode& node) { return node.def->op(); }
int InputsOf(const FunctionNode& node) { return node.inputs; }

template <typename Test>
bool AnyFirstReader(const FunctionNode& node, const Test& test) {
  return absl::c_any_of(node.first_readers,
                        [&](const FunctionNode* reader) { return test(*reader); });
}

std::vector<FunctionNode> NodesOf(const FunctionDef& function) {
  std::vector<FunctionNode> nodes(function.node_def_size());
  absl::flat_hash_map<absl::string_view, FunctionNode*> named;
  for (int i = 0; i < function.node_def_size(); ++i) {
    nodes[i].def = &function.node_def(i);
    named[nodes[i].def->name()] = &nodes[i];
  }
  for (FunctionNode& node : nodes) {
    for (const std::string& input : node.def->input()) node.inputs += input[0] != '^';
    if (node.inputs == 0) continue;
    const absl::string_view first = node.def->input(0);
    const auto from = named.find(first.substr(0, first.find(':')));
    if (from != named.end()) from->second->first_readers.push_back(&node);
  }
  return nodes;
}

// The outputs of a node but the first, as a function's nodes name them; none of an op that nobody
// has defined.
absl::flat_hash_map<std::string, tensorflow::DataType> LaterOutputs(const NodeDef& node) {
  absl::flat_hash_map<std::string, tensorflow::DataType> later;
  const tensorflow::OpRegistrationData* op = nullptr;
  if (!tensorflow::OpRegistry::Global()->LookUp(node.op(), &op).ok()) return later;
  const auto outputs = Flatten(op->op_def.output_arg(), tensorflow::AttrSlice(node));
  if (!outputs.ok()) return later;
  bool is_first = true;
  for (const FlatArg& arg : *outputs) {
    for (size_t k = 0; k < arg.types.size(); ++k) {
      if (!is_first) later[absl::StrCat(node.name(), ":", arg.name, ":", k)] = arg.types[k];
      is_first = false;
    }
  }
  return later;
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

absl::Status KeepOutputs(absl::FunctionRef<bool(const std::string&)> is_kept, Graph* graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph->op_nodes()) {
    if (node->num_outputs() > 1 && is_kept(node->type_string())) nodes.push_back(node);
  }
  for (Node* node : nodes) TF_RETURN_IF_ERROR(KeepOutputs(node, graph));
  return absl::OkStatus();
}

bool AreOutputsReadElsewhere(absl::FunctionRef<bool(const std::string&)> is_kept,
                             const Graph& graph) {
  return absl::c_any_of(graph.op_nodes(), [&](const Node* node) {
    return node->num_outputs() > 1 && is_kept(node->type_string()) &&
           absl::c_any_of(node->out_edges(),
                          [](const Edge* edge) { return IsReadElsewhere(*edge); });
  });
}

absl::optional<FunctionDef> WithKeptOutputs(const FunctionDef& function,
                                            absl::FunctionRef<bool(const std::string&)> is_kept) {
  const auto is_ours = [&](const NodeDef& node) { return is_kept(node.op()); };
  if (!absl::c_any_of(function.node_def(), is_ours)) return absl::nullopt;
  absl::flat_hash_map<std::string, tensorflow::DataType> later;
  absl::flat_hash_set<std::string> names;
  for (const NodeDef& node : function.node_def()) {
    names.insert(node.name());
    if (is_ours(node)) later.merge(LaterOutputs(node));
  }
  const std::vector<FunctionNode> nodes = NodesOf(function);
  FunctionDef changed = function;
  absl::flat_hash_map<std::string, std::string> kept;  // values, and what has them now
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].inputs == 0 || !ReadsElsewhere(nodes[i])) continue;
    std::string* const input = changed.mutable_node_def(static_cast<int>(i))->mutable_input(0);
    const auto type = later.find(*input);
    if (type == later.end()) continue;
    std::string& own = kept[*input];
    if (own.empty()) {
      std::string name = "composite_output";
      for (int k = 0; !names.insert(name).second; ++k) name = absl::StrCat("composite_output_", k);
      NodeDef* const node = changed.add_node_def();
      node->set_name(name);
      node->set_op("EnsureShape");
      node->add_input(*input);
      (*node->mutable_attr())["T"].set_type(type->second);
      (*node->mutable_attr())["shape"].mutable_shape()->set_unknown_rank(true);
      own = absl::StrCat(name, ":output:0");
    }
    *input = own;
  }
  return kept.empty() ? absl::nullopt : absl::make_optional(std::move(changed));
}

}  // namespace composite
