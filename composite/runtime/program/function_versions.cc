#include "composite/runtime/program/function_versions.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/random.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::OpRegistry;

// The ops that a node runs itself, those of functions that it names left out; of a composite, those
// of its body.
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
  // The function of a node of kFunctionOp is one of those that are visited.
  if (node.op() == kFunctionOp) return absl::OkStatus();
  if (auto composite = Registry::Global().Resolve(node.op(), AttrSlice(node)); composite.ok()) {
    reached->insert((*composite)->unconditional_ops.begin(), (*composite)->unconditional_ops.end());
  } else {
    reached->insert(node.op());
  }
  return absl::OkStatus();
}

// The ops of a function and of all that it reaches, sorted.
absl::StatusOr<std::vector<std::string>> OpsOfFunctions(const FunctionDefLibrary& library) {
  std::set<std::string> functions, reached;
  for (const auto& function : library.function()) functions.insert(function.signature().name());
  for (const auto& function : library.function()) {
    for (const NodeDef& node : function.node_def()) {
      TF_RETURN_IF_ERROR(VisitNode(node, functions, &reached));
    }
  }
  return std::vector<std::string>(reached.begin(), reached.end());
}

// Whether a name stands for a function of this digest.
bool StandsFor(const std::string& name, const std::string& content) {
  auto known = Registry::Global().Find(kFunctionOp, name);
  if (known.ok()) return (*known)->content == content;
  const absl::string_view digest = DigestInName(name);
  return digest.empty() || digest == content;
}

absl::Status Add(const FunctionDefLibrary& library, std::string content) {
  const std::string& name = library.function(0).signature().name();
  if (Registry::Global().Find(kFunctionOp, name).ok()) return absl::OkStatus();
  auto version = std::make_shared<OpVersion>();
  version->op_name = kFunctionOp;
  version->digest = version->place = name;
  version->content = std::move(content);
  const OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(kFunctionOp, &op_def));
  version->op_def = *op_def;
  TF_ASSIGN_OR_RETURN(version->unconditional_ops, OpsOfFunctions(library));
  auto functions = std::make_shared<FunctionLibraryDefinition>(OpRegistry::Global());
  TF_RETURN_IF_ERROR(functions->AddLibrary(library));
  version->function = std::move(functions);
  Registry::Global().Add(std::move(version));
  return absl::OkStatus();
}

// The name of the version that stands for an altered function.
absl::StatusOr<std::string> AddAltered(FunctionDefLibrary library, const std::string& content) {
  std::string* name = library.mutable_function(0)->mutable_signature()->mutable_name();
  const std::string was = *name;
  absl::StrAppend(name, "_", content);
  if (!Registry::Global().Find(kFunctionOp, *name).ok()) {
    LOG(WARNING) << "The function " << was
                 << " of a CompositeCall is not what its name stands for: "
                 << "it was altered since. It computes what it says, without the kernels of that.";
  }
  TF_RETURN_IF_ERROR(Add(library, content));
  return *name;
}

// Begins each mark of this process, and none of another's.
const std::string& OwnMark() {
  static const auto* mark = new std::string(absl::StrCat(
      absl::Hex(tensorflow::random::New64()), absl::Hex(tensorflow::random::New64()), " "));
  return *mark;
}

std::string MarkOf(absl::string_view version) { return absl::StrCat(OwnMark(), version); }

NodeDef Renamed(const NodeDef& node, const std::string& version) {
  NodeDef renamed = node;
  (*renamed.mutable_attr())[kFunctionAttr].mutable_func()->set_name(version);
  return renamed;
}

// The mark of a node.
absl::StatusOr<AttrValue> Means(const NodeDef& node, const FunctionLibraryDefinition& library) {
  TF_ASSIGN_OR_RETURN(const auto renamed, LearnFunction(node, library));
  AttrValue mark;
  mark.set_s(MarkOf(VersionOf(AttrSlice(renamed ? *renamed : node).Find(kFunctionAttr))));
  return mark;
}

}  // namespace

bool IsAltered(const AttrValue* means, const AttrValue* function) {
  return means != nullptr && means->s() != MarkOf(VersionOf(function));
}

bool IsAltered(AttrSlice attrs) {
  return IsAltered(attrs.Find(kMeansAttr), attrs.Find(kFunctionAttr));
}

absl::Status RegisterFunction(const FunctionDefLibrary& library) {
  if (library.function().empty()) return absl::InvalidArgumentError("there is no function");
  const std::string& name = library.function(0).signature().name();
  std::string content = FunctionDigest(library);
  if (StandsFor(name, content)) return Add(library, std::move(content));
  return absl::InvalidArgumentError(absl::StrCat(
      "the function ", name, " is not what its name stands for: it was altered since it was made"));
}

absl::StatusOr<absl::optional<NodeDef>> LearnFunction(const NodeDef& node,
                                                      const FunctionLibraryDefinition& library) {
  if (node.op() != kFunctionOp) return absl::nullopt;
  const std::string name(VersionOf(AttrSlice(node).Find(kFunctionAttr)));
  const AttrValue* mark = AttrSlice(node).Find(kMeansAttr);
  if (mark != nullptr && absl::StartsWith(mark->s(), OwnMark())) {
    const std::string version = mark->s().substr(OwnMark().size());
    return version == name ? absl::nullopt : absl::make_optional(Renamed(node, version));
  }
  const FunctionDef* function = library.Find(name);
  if (function == nullptr) return absl::nullopt;
  FunctionDefLibrary found = ReachedFrom(library, *function);
  std::string content = FunctionDigest(found);
  if (StandsFor(name, content)) {
    TF_RETURN_IF_ERROR(Add(found, std::move(content)));
    return absl::nullopt;
  }
  TF_ASSIGN_OR_RETURN(const std::string own, AddAltered(std::move(found), content));
  return Renamed(node, own);
}

absl::Status LearnFunctions(const FunctionLibraryDefinition& library, tensorflow::Graph* graph) {
  for (tensorflow::Node* node : graph->op_nodes()) {
    if (node->type_string() != kFunctionOp) continue;
    TF_ASSIGN_OR_RETURN(AttrValue mark, Means(node->def(), library));
    node->AddAttr(kMeansAttr, std::move(mark));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<FunctionDef>> LearnFunctions(const FunctionLibraryDefinition& library,
                                                           const FunctionDef& function) {
  absl::optional<FunctionDef> marked;
  for (int i = 0; i < function.node_def_size(); ++i) {
    const NodeDef& node = function.node_def(i);
    if (node.op() != kFunctionOp) continue;
    TF_ASSIGN_OR_RETURN(AttrValue mark, Means(node, library));
    if (!marked.has_value()) marked = function;
    (*marked->mutable_node_def(i)->mutable_attr())[kMeansAttr] = std::move(mark);
  }
  return marked;
}

}  // namespace composite
