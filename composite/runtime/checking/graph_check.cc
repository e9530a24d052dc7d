#include "composite/runtime/checking/graph_check.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/validate.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;

absl::Status Invalid(const Node& node, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node.name(), " of ", node.type_string(), " ", why));
}

absl::Status CheckInputs(const Node& node) {
  std::vector<const Edge*> edges;
  TF_RETURN_IF_ERROR(node.input_edges(&edges));
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Node& from = *edges[i]->src();
    const int output = edges[i]->src_output();
    if (output < 0 || output >= from.num_outputs()) {
      return Invalid(node, absl::StrCat("reads output ", output, " of ", from.name(),
                                        ", which has ", from.num_outputs()));
    }
    const DataType wanted = node.input_type(i), given = from.output_type(output);
    if (wanted != given && wanted != tensorflow::BaseType(given)) {
      return Invalid(
          node, absl::StrCat("is given ", tensorflow::DataTypeString(given), " by ", from.name(),
                             " as input ", i, ", which is ", tensorflow::DataTypeString(wanted)));
    }
  }
  return absl::OkStatus();
}

bool Fit(const google::protobuf::RepeatedPtrField<tensorflow::OpDef::ArgDef>& declared,
         const tensorflow::DataTypeVector& dtypes) {
  if (declared.size() != static_cast<int>(dtypes.size())) return false;
  for (int i = 0; i < declared.size(); ++i) {
    if (declared[i].type() != dtypes[i]) return false;
  }
  return true;
}

// Of a node that calls a made function.
absl::Status CheckCall(const Node& node, const FunctionLibraryDefinition& library) {
  const std::string name(VersionOf(node.attrs().Find(kFunctionAttr)));
  // Not Find(): a library may have what its default registry has, see AddIfMissing.
  const tensorflow::OpDef* signature = nullptr;
  if (!library.LookUpOpDef(name, &signature).ok()) {
    // The process has the function itself: the node's kernel does not look it up.
    const bool is_ours = node.type_string() == kFunctionOp;
    if (is_ours && Registry::Global().Find(kFunctionOp, name).ok()) return absl::OkStatus();
    return Invalid(node, absl::StrCat("calls ", name, ", which is not in the library"));
  }
  if (!Fit(signature->input_arg(), node.input_types()) ||
      !Fit(signature->output_arg(), node.output_types())) {
    return Invalid(node, absl::StrCat("has other dtypes than ", name, ", which it calls"));
  }
  return absl::OkStatus();
}

}  // namespace

bool CallsMadeFunction(const std::string& op, tensorflow::AttrSlice attrs) {
  const bool is_call = op == "PartitionedCall" || op == "StatefulPartitionedCall";
  if (!is_call && op != kFunctionOp) return false;
  return absl::StartsWith(VersionOf(attrs.Find(kFunctionAttr)),
                          is_call ? kMadePrefix : kRegionPrefix);
}

absl::StatusOr<std::unique_ptr<Graph>> CopyOf(const Graph& graph) {
  const tensorflow::OpDef* known = nullptr;
  for (const Node* node : graph.op_nodes()) {
    TF_RETURN_IF_ERROR(graph.flib_def().LookUpOpDef(node->type_string(), &known));
  }
  auto copy = std::make_unique<Graph>(graph.flib_def());
  copy->Copy(graph);
  return copy;
}

absl::Status CheckGraph(const tensorflow::FunctionDef& function, const Graph& graph,
                        const FunctionLibraryDefinition& library) {
  absl::flat_hash_set<absl::string_view> names;
  for (const Node* node : graph.op_nodes()) {
    if (!names.insert(node->name()).second) return Invalid(*node, "has the name of another one");
    TF_RETURN_IF_ERROR(CheckInputs(*node));
    if (CallsMadeFunction(node->type_string(), node->attrs())) {
      TF_RETURN_IF_ERROR(CheckCall(*node, library));
    }
  }
  for (const auto& [name, node] : function.control_ret()) {
    if (names.contains(node)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("control output ", name, " is node ", node, ", which is not there"));
  }
  return tensorflow::graph::ValidateGraphHasNoCycle(graph);
}

absl::Status CheckFunction(const tensorflow::FunctionDef& function,
                           const FunctionLibraryDefinition& library) {
  std::unique_ptr<tensorflow::FunctionBody> body;
  TF_RETURN_IF_ERROR(tensorflow::FunctionDefToBodyHelper(
      function, tensorflow::AttrSlice(&function.attr()), &library, &body));
  return CheckGraph(function, *body->graph, library);
}

void NoteInvalid(absl::string_view function, absl::string_view without, const absl::Status& why) {
  Count(GlobalStats().invalid_graphs);
  const std::string what =
      function.empty() ? "a session's graph" : absl::StrCat("function ", function);
  LOG(WARNING) << "Composite: " << what << " runs without " << without
               << ", with which it would not be valid: " << why.message();
}

}  // namespace composite
