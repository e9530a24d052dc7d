#include "composite/runtime/program/function_versions.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::OpRegistry;

// The ops that a node runs itself, those of functions that it names left out.
absl::Status VisitNode(const NodeDef& node, const std::set<std::string>& functions,
                       std::set<std::string>* reached) {
  if (functions.count(node.op()) != 0) return absl::OkStatus();
  const OpDef* op_def = nullptr;
  if (!OpRegistry::Global()->LookUpOpDef(node.op(), &op_def).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node.name(), " is of ", node.op(), ", which is no op here"));
  }
  if (op_def->is_stateful()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node.name(), " is of ", node.op(), ", which keeps state"));
  }
  reached->insert(node.op());
  return absl::OkStatus();
}

// The ops of a function and of all that it reaches, sorted.
absl::StatusOr<std::vector<std::string>> OpsOfFunctions(
    const tensorflow::FunctionDefLibrary& library) {
  std::set<std::string> functions, reached;
  for (const auto& function : library.function()) functions.insert(function.signature().name());
  for (const auto& function : library.function()) {
    for (const NodeDef& node : function.node_def()) {
      TF_RETURN_IF_ERROR(VisitNode(node, functions, &reached));
    }
  }
  return std::vector<std::string>(reached.begin(), reached.end());
}

}  // namespace

absl::Status RegisterFunction(const tensorflow::FunctionDefLibrary& library) {
  if (library.function().empty()) return absl::InvalidArgumentError("there is no function");
  auto version = std::make_shared<OpVersion>();
  version->op_name = kFunctionOp;
  version->digest = version->place = library.function(0).signature().name();
  const OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(kFunctionOp, &op_def));
  version->op_def = *op_def;
  TF_ASSIGN_OR_RETURN(version->unconditional_ops, OpsOfFunctions(library));
  auto functions = std::make_shared<tensorflow::FunctionLibraryDefinition>(OpRegistry::Global());
  TF_RETURN_IF_ERROR(functions->AddLibrary(library));
  version->function = std::move(functions);
  Registry::Global().Add(std::move(version));
  return absl::OkStatus();
}

absl::Status LearnFunction(const NodeDef& node, const FunctionLibraryDefinition& library) {
  if (node.op() != kFunctionOp) return absl::OkStatus();
  const std::string name(VersionOf(tensorflow::AttrSlice(node).Find(kFunctionAttr)));
  const tensorflow::FunctionDef* function = library.Find(name);
  if (function == nullptr || Registry::Global().Find(kFunctionOp, name).ok()) {
    return absl::OkStatus();
  }
  tensorflow::FunctionDefLibrary found;
  *found.add_function() = *function;
  const FunctionLibraryDefinition reachable = library.ReachableDefinitions(*function);
  for (const std::string& other : reachable.ListFunctionNames()) {
    if (other != name) *found.add_function() = *reachable.Find(other);
  }
  return RegisterFunction(found);
}

absl::Status LearnFunctions(const tensorflow::Graph& graph,
                            const FunctionLibraryDefinition& library) {
  for (const tensorflow::Node* node : graph.op_nodes()) {
    TF_RETURN_IF_ERROR(LearnFunction(node->def(), library));
  }
  return absl::OkStatus();
}

absl::Status LearnFunctions(const tensorflow::FunctionDef& function,
                            const FunctionLibraryDefinition& library) {
  for (const NodeDef& node : function.node_def()) {
    TF_RETURN_IF_ERROR(LearnFunction(node, library));
  }
  return absl::OkStatus();
}

}  // namespace composite
