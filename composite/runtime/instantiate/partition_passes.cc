#include "composite/runtime/instantiate/partition_passes.h"

#include <unordered_map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;

bool IsOfOneDnn(const Node* node) { return absl::StartsWith(node->type_string(), "_Mkl"); }

// Empty: it stays.
absl::StatusOr<absl::optional<FunctionDef>> Rewritten(const FunctionDef& function,
                                                      const std::string& device,
                                                      FunctionLibraryDefinition* library) {
  if (!function.control_ret().empty() || !function.signature().attr().empty()) {
    return absl::nullopt;
  }
  std::unique_ptr<tensorflow::FunctionBody> body;
  TF_RETURN_IF_ERROR(tensorflow::FunctionDefToBodyHelper(
      function, tensorflow::AttrSlice(&function.attr()), library, &body));
  auto graph = std::make_unique<Graph>(library);
  graph->Copy(*body->graph);
  for (Node* node : graph->op_nodes()) node->set_assigned_device_name(device);
  TF_RETURN_IF_ERROR(RunPartitionPasses(device, library, &graph));
  if (absl::c_none_of(graph->op_nodes(), IsOfOneDnn)) return absl::nullopt;
  FunctionDef made;
  TF_RETURN_IF_ERROR(tensorflow::GraphToFunctionDef(*graph, function.signature().name(), &made));
  for (tensorflow::NodeDef& node : *made.mutable_node_def()) node.clear_device();
  *made.mutable_attr() = function.attr();
  return made;
}

}  // namespace

absl::Status RunPartitionPasses(const std::string& device, FunctionLibraryDefinition* library,
                                std::unique_ptr<Graph>* graph) {
  std::unordered_map<std::string, std::unique_ptr<Graph>> partitions;
  partitions[device] = std::move(*graph);
  tensorflow::GraphOptimizationPassOptions options;
  options.flib_def = library;
  options.is_function_graph = true;
  options.partition_graphs = &partitions;
  absl::Status status = tensorflow::OptimizationPassRegistry::Global()->RunGrouping(
      tensorflow::OptimizationPassRegistry::POST_PARTITIONING, options);
  *graph = std::move(partitions.begin()->second);
  return status;
}

absl::StatusOr<std::shared_ptr<const FunctionLibraryDefinition>> WithPartitionPasses(
    const FunctionLibraryDefinition& library, const std::string& device) {
  auto rewritten = std::make_shared<FunctionLibraryDefinition>(library);
  bool any = false;
  for (const std::string& name : library.ListFunctionNames()) {
    TF_ASSIGN_OR_RETURN(auto made, Rewritten(*library.Find(name), device, rewritten.get()));
    if (!made.has_value()) continue;
    TF_RETURN_IF_ERROR(rewritten->ReplaceFunction(name, *made));
    any = true;
  }
  if (!any) rewritten.reset();
  return std::shared_ptr<const FunctionLibraryDefinition>(std::move(rewritten));
}

}  // namespace composite
