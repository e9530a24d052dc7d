#include "composite/runtime/regions/function_regions.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::NameRangeMap;
using tensorflow::Node;
using tensorflow::NodeDef;

absl::StatusOr<NameRangeMap> OutputsOf(const Node& node) {
  NameRangeMap outputs;
  TF_RETURN_IF_ERROR(tensorflow::NameRangesForNode(node.attrs(), node.op_def(), nullptr, &outputs));
  return outputs;
}

// A value in a function's own words: "argument" or "node:output:index".
absl::StatusOr<std::string> Reference(const Value& value) {
  const auto& [node, index] = value;
  if (node->IsArg()) return node->name();
  TF_ASSIGN_OR_RETURN(const NameRangeMap outputs, OutputsOf(*node));
  for (const auto& [name, range] : outputs) {
    if (index >= range.first && index < range.second) {
      return absl::StrCat(node->name(), ":", name, ":", index - range.first);
    }
  }
  return absl::InternalError(absl::StrCat("node ", node->name(), " has no output ", index));
}

// What references to a region's results become.
class References {
 public:
  absl::Status Move(const Region& region) {
    const std::vector<Value>& results = region.function.results;
    for (size_t i = 0; i < results.size(); ++i) {
      TF_ASSIGN_OR_RETURN(const std::string was, Reference(results[i]));
      const std::string is = absl::StrCat(region.call.name(), ":output:", i);
      // "node:output" is another word for "node:output:0".
      if (absl::EndsWith(was, ":0")) moved_[was.substr(0, was.size() - 2)] = is;
      moved_[was] = is;
    }
    return absl::OkStatus();
  }

  void Update(std::string* reference) const {
    if (auto it = moved_.find(*reference); it != moved_.end()) *reference = it->second;
  }

 private:
  absl::flat_hash_map<std::string, std::string> moved_;
};

// Adds what stays of the loops of a region, whose call reads it.
absl::Status AddLeftBehind(const LeftBehind& left, NodeDef* call, FunctionDef* function) {
  std::vector<std::string> waits;
  for (const Node* before : left.before) waits.push_back(absl::StrCat("^", before->name()));
  std::vector<std::string> reads = waits;
  for (const LeftBehind::Read& read : left.reads) {
    NodeDef* node = function->add_node_def();
    *node = read.node;
    TF_ASSIGN_OR_RETURN(*node->add_input(), Reference(read.variable));
    node->mutable_input()->Add(waits.begin(), waits.end());
    for (const Node* behind : left.behind) {
      node->add_input(absl::StrCat("^", behind->name()));
    }
    *call->mutable_input(read.argument) = absl::StrCat(node->name(), ":value:0");
    reads.push_back(absl::StrCat("^", node->name()));
  }
  for (const Node* loop : left.loops) {
    NodeDef* node = function->add_node_def();
    *node = NoOpFor(*loop);
    node->mutable_input()->Add(reads.begin(), reads.end());
    for (const Node* behind : left.behind) {
      if (left.reads.empty()) node->add_input(absl::StrCat("^", behind->name()));
    }
  }
  return absl::OkStatus();
}

// A node of the graph in a function's own words.
absl::StatusOr<NodeDef> InWords(const Node& node) {
  NodeDef def = node.def();
  def.clear_input();
  std::vector<const tensorflow::Edge*> edges;
  TF_RETURN_IF_ERROR(node.input_edges(&edges));
  for (const tensorflow::Edge* edge : edges) {
    TF_ASSIGN_OR_RETURN(*def.add_input(), Reference({edge->src(), edge->src_output()}));
  }
  for (const tensorflow::Edge* edge : node.in_edges()) {
    const bool waits = edge->IsControlEdge() && !edge->src()->IsSource();
    if (waits) def.add_input(absl::StrCat("^", edge->src()->name()));
  }
  return def;
}

// `graph` is that of the function, with its updates of variables and without what is unread.
absl::StatusOr<FunctionDef> Replaced(const FunctionDef& function, const tensorflow::Graph& graph,
                                     const std::vector<Region>& regions) {
  References references;
  absl::flat_hash_map<std::string, const Node*> stay;
  for (const Node* node : graph.op_nodes()) {
    if (!node->IsArg() && !node->IsRetval()) stay[node->name()] = node;
  }
  for (const Region& region : regions) {
    TF_RETURN_IF_ERROR(references.Move(region));
    for (const Node* node : region.nodes) stay.erase(node->name());
  }
  FunctionDef changed = function;
  changed.clear_node_def();
  for (const NodeDef& node : function.node_def()) {
    const auto own = stay.find(node.name());
    if (own == stay.end()) continue;
    TF_ASSIGN_OR_RETURN(*changed.add_node_def(), InWords(*own->second));
    stay.erase(own);
  }
  for (const Node* node : graph.op_nodes()) {
    if (!stay.contains(node->name())) continue;
    TF_ASSIGN_OR_RETURN(*changed.add_node_def(), InWords(*node));
  }
  for (const Region& region : regions) {
    NodeDef call = region.call;
    for (const Argument& argument : region.function.arguments) {
      TF_ASSIGN_OR_RETURN(*call.add_input(), Reference(argument.value));
    }
    TF_RETURN_IF_ERROR(AddLeftBehind(region.left, &call, &changed));
    std::set<std::string> waits;
    for (const Node* node : region.left.waits) waits.insert(node->name());
    for (const Node* node : region.waits) waits.insert(node->name());
    for (const std::string& name : waits) call.add_input(absl::StrCat("^", name));
    *changed.add_node_def() = std::move(call);
  }
  for (NodeDef& node : *changed.mutable_node_def()) {
    for (std::string& input : *node.mutable_input()) references.Update(&input);
  }
  for (const Node* node : graph.op_nodes()) {
    const tensorflow::Edge* result = nullptr;
    if (!node->IsRetval() || !node->input_edge(0, &result).ok()) continue;
    const int64_t index = node->attrs().Find("index")->i();
    const std::string& name = function.signature().output_arg(static_cast<int>(index)).name();
    TF_ASSIGN_OR_RETURN(std::string value, Reference({result->src(), result->src_output()}));
    references.Update(&value);
    (*changed.mutable_ret())[name] = std::move(value);
  }
  return changed;
}

}  // namespace

absl::StatusOr<FunctionWithRegions> WithRegions(const FunctionDef& function,
                                                FunctionLibraryDefinition* library,
                                                const Selection& denied, const Joining& joining) {
  std::unique_ptr<tensorflow::FunctionBody> body;
  TF_RETURN_IF_ERROR(tensorflow::FunctionDefToBodyHelper(
      function, tensorflow::AttrSlice(&function.attr()), library, &body));
  TF_RETURN_IF_ERROR(Prepare(function, *library, joining, body->graph));
  const std::vector<Region> regions = MakeRegions(body->graph, *library, denied, joining);
  TF_RETURN_IF_ERROR(AddFunctions(regions, library));
  TF_ASSIGN_OR_RETURN(FunctionDef changed, Replaced(function, *body->graph, regions));
  return FunctionWithRegions{std::move(changed), static_cast<int>(regions.size())};
}

}  // namespace composite
