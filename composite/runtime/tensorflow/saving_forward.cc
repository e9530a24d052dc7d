#include "composite/runtime/tensorflow/saving_forward.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/program/signature.h"
#include "composite/runtime/tensorflow/stand_in.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

// The name of the forward node; empty for a node that is no saving forward.
std::string ForwardOf(const std::string& op, AttrSlice attrs) {
  const tensorflow::AttrValue* forward = attrs.Find(kSavingForwardAttr);
  if (op != kFunctionOp || forward == nullptr) return "";
  return IsAltered(attrs) ? "" : forward->s();
}

// What a node computes: its op and the version that it was made with.
std::string Meaning(const std::string& op, AttrSlice attrs) {
  return absl::StrCat(op, " ", VersionOf(attrs.Find(kProgramAttr)));
}

// Whether a saving forward was made for what this node computes. Its name alone does not tell: a
// part of a graph may have been imported beside others, or edited.
bool IsOf(AttrSlice saving, const std::string& op, AttrSlice forward) {
  const tensorflow::AttrValue* made_for = saving.Find(kSavingForwardOfAttr);
  return made_for != nullptr && made_for->s() == Meaning(op, forward);
}

bool BeginsWith(const std::vector<DataType>& types, const std::vector<DataType>& first) {
  return types.size() >= first.size() && std::equal(first.begin(), first.end(), types.begin());
}

// Whether the saving forward reads and waits for nothing but what the forward node does, so that it
// can run as early.
bool ReadsTheSame(const Node& saving, const Node& forward) {
  std::set<std::pair<const Node*, int>> given;
  for (const Edge* edge : forward.in_edges()) given.emplace(edge->src(), edge->src_output());
  for (const Edge* edge : saving.in_edges()) {
    if (!edge->src()->IsSource() && given.count({edge->src(), edge->src_output()}) == 0) {
      return false;
    }
  }
  return true;
}

bool ReadsTheSame(const NodeDef& saving, const NodeDef& forward) {
  const std::set<std::string> given(forward.input().begin(), forward.input().end());
  for (const std::string& input : saving.input()) {
    if (given.count(input) == 0) return false;
  }
  return true;
}

bool Fits(const Node& saving, const Node& forward) {
  return &saving != &forward && IsOf(saving.attrs(), forward.type_string(), forward.attrs()) &&
         BeginsWith({saving.output_types().begin(), saving.output_types().end()},
                    {forward.output_types().begin(), forward.output_types().end()}) &&
         ReadsTheSame(saving, forward);
}

}  // namespace

absl::Status MergeSavingForwards(Graph* graph) {
  std::vector<Node*> saving_forwards;
  for (Node* node : graph->op_nodes()) {
    if (!ForwardOf(node->type_string(), node->attrs()).empty()) saving_forwards.push_back(node);
  }
  if (saving_forwards.empty()) return absl::OkStatus();
  absl::flat_hash_map<std::string, Node*> nodes;
  for (Node* node : graph->op_nodes()) nodes[node->name()] = node;
  for (Node* saving : saving_forwards) {
    auto forward = nodes.find(ForwardOf(saving->type_string(), saving->attrs()));
    if (forward == nodes.end() || !Fits(*saving, *forward->second)) continue;
    TF_RETURN_IF_ERROR(PutInPlace(graph, saving, forward->second));
    nodes.erase(forward);  // a second one of the same node stays
  }
  return absl::OkStatus();
}

absl::flat_hash_map<std::string, NodeDef> SavingForwardIdentities(
    const tensorflow::FunctionDef& function) {
  absl::flat_hash_map<std::string, const NodeDef*> saving_forwards;
  for (const NodeDef& node : function.node_def()) {
    const std::string forward = ForwardOf(node.op(), AttrSlice(node));
    if (!forward.empty()) saving_forwards.emplace(forward, &node);
  }
  absl::flat_hash_map<std::string, NodeDef> identities;
  if (saving_forwards.empty()) return identities;
  for (const NodeDef& node : function.node_def()) {
    auto saving = saving_forwards.find(node.name());
    if (saving == saving_forwards.end() || saving->second == &node) continue;
    if (!IsOf(AttrSlice(*saving->second), node.op(), AttrSlice(node))) continue;
    if (!ReadsTheSame(*saving->second, node)) continue;
    auto version = Registry::Global().Resolve(node.op(), AttrSlice(node));
    if (!version.ok()) continue;
    auto outputs = Flatten((*version)->op_def.output_arg(), AttrSlice(node));
    if (!outputs.ok()) continue;
    const std::vector<DataType> types = FlatTypes(*outputs);
    NodeDef identity = StandIn(node.name(), node.device(), types);
    for (size_t i = 0; i < types.size(); ++i) {
      identity.add_input(absl::StrCat(saving->second->name(), ":output:", i));
    }
    for (const std::string& input : node.input()) {
      if (absl::StartsWith(input, "^")) identity.add_input(input);
    }
    identities.emplace(node.name(), std::move(identity));
  }
  return identities;
}

}  // namespace composite
