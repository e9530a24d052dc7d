#include "composite/runtime/regions/function_regions.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/checking/graph_check.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::FunctionBody;
using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::NameRangeMap;
using tensorflow::Node;
using tensorflow::NodeDef;

// Writes the nodes of a graph in a function's own words.
class Words {
 public:
  absl::StatusOr<NodeDef> Of(const Node& node) {
    NodeDef def = node.def();
    def.clear_input();
    std::vector<const Edge*> edges;
    TF_RETURN_IF_ERROR(node.input_edges(&edges));
    for (const Edge* edge : edges) {
      TF_ASSIGN_OR_RETURN(*def.add_input(), Reference(*edge));
    }
    std::vector<const Node*> before;
    for (const Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge() && !edge->src()->IsSource()) before.push_back(edge->src());
    }
    absl::c_sort(before, [](const Node* a, const Node* b) { return a->id() < b->id(); });
    for (const Node* one : before) def.add_input(absl::StrCat("^", one->name()));
    return def;
  }

  // What an edge hands on: "argument" or "node:output:index".
  absl::StatusOr<std::string> Reference(const Edge& edge) {
    const Node& from = *edge.src();
    const int output = edge.src_output();
    if (from.IsArg()) return from.name();
    TF_ASSIGN_OR_RETURN(const NameRangeMap* outputs, OutputsOf(from));
    for (const auto& [name, range] : *outputs) {
      if (output >= range.first && output < range.second) {
        return absl::StrCat(from.name(), ":", name, ":", output - range.first);
      }
    }
    return absl::InternalError(absl::StrCat("node ", from.name(), " has no output ", output));
  }

 private:
  absl::StatusOr<const NameRangeMap*> OutputsOf(const Node& node) {
    const auto [known, is_new] = outputs_.try_emplace(&node);
    if (is_new) {
      known->second = std::make_unique<NameRangeMap>();
      TF_RETURN_IF_ERROR(
          tensorflow::NameRangesForNode(node.attrs(), node.op_def(), nullptr, known->second.get()));
    }
    return known->second.get();
  }

  absl::flat_hash_map<const Node*, std::unique_ptr<NameRangeMap>> outputs_;
};

// The function whose graph this is by now.
absl::StatusOr<FunctionDef> Written(const FunctionDef& function, const FunctionBody& body) {
  FunctionDef written = function;
  written.clear_node_def();
  Words words;
  for (const Node* node : body.graph->op_nodes()) {
    if (node->IsArg() || node->IsRetval()) continue;
    TF_ASSIGN_OR_RETURN(*written.add_node_def(), words.Of(*node));
  }
  for (size_t i = 0; i < body.ret_nodes.size(); ++i) {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(body.ret_nodes[i]->input_edge(0, &edge));
    const std::string& name = function.signature().output_arg(static_cast<int>(i)).name();
    TF_ASSIGN_OR_RETURN((*written.mutable_ret())[name], words.Reference(*edge));
  }
  return written;
}

// Whether each argument and each result is one tensor.
bool HasPlainSignature(const FunctionDef& function) {
  const auto is_plain = [](const tensorflow::OpDef::ArgDef& arg) {
    return arg.type() != tensorflow::DT_INVALID && arg.number_attr().empty();
  };
  const tensorflow::OpDef& signature = function.signature();
  return signature.attr().empty() && absl::c_all_of(signature.input_arg(), is_plain) &&
         absl::c_all_of(signature.output_arg(), is_plain);
}

}  // namespace

absl::StatusOr<FunctionWithRegions> WithRegions(const FunctionDef& function,
                                                FunctionLibraryDefinition* library,
                                                const Selection& denied, const Joining& joining) {
  if (!HasPlainSignature(function)) return FunctionWithRegions{function, 0};
  std::unique_ptr<FunctionBody> body;
  TF_RETURN_IF_ERROR(tensorflow::FunctionDefToBodyHelper(
      function, tensorflow::AttrSlice(&function.attr()), library, &body));
  TF_ASSIGN_OR_RETURN(const int regions,
                      AddRegions(function, denied, joining, library, body->graph));
  TF_ASSIGN_OR_RETURN(FunctionDef changed, Written(function, *body));
  TF_RETURN_IF_ERROR(CheckFunction(changed, *library));
  return FunctionWithRegions{std::move(changed), regions};
}

}  // namespace composite
