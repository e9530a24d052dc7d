#include "composite/runtime/tensorflow/composition.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/op_def_text.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::OpRegistry;

constexpr char kXlaAttr[] = "_XlaMustCompile";
// Part of the name of a derived gradient (gradient.py), to which tracing adds on both sides.
constexpr char kBackwardName[] = "composite_backward_";

bool HasRefs(const OpDef& op_def) {
  for (const auto* args : {&op_def.input_arg(), &op_def.output_arg()}) {
    for (const OpDef::ArgDef& arg : *args) {
      if (arg.is_ref()) return true;
    }
  }
  return false;
}

bool IsTrue(const google::protobuf::Map<std::string, tensorflow::AttrValue>& attrs,
            const char* name) {
  auto it = attrs.find(name);
  return it != attrs.end() && it->second.b();
}

void AddReachable(const FunctionLibraryDefinition& library, const std::string& name,
                  absl::flat_hash_set<std::string>* functions) {
  functions->insert(name);
  auto reachable = library.ReachableDefinitions(name);
  if (!reachable.ok()) return;  // it is not in the library, so nothing of it is rewritten either
  for (const std::string& callee : reachable->ListFunctionNames()) functions->insert(callee);
}

}  // namespace

absl::StatusOr<OpDef> CompositionDeclaration(const std::string& tf_op) {
  const OpDef* found = nullptr;
  if (!OpRegistry::Global()->LookUpOpDef(tf_op, &found).ok()) {
    return absl::NotFoundError(absl::StrCat("TensorFlow has no op ", tf_op));
  }
  const auto refuse = [&tf_op](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("The op ", tf_op, " cannot have a composition: ", why));
  };
  if (Registry::Global().Contains(tf_op)) return refuse("it is a composite itself");
  if (found->is_stateful()) return refuse("it keeps state, which a body has not");
  if (TraitsOf(tf_op).structural) return refuse("TensorFlow finds it in graphs by its name");
  if (HasRefs(*found)) return refuse("it takes or gives a Ref tensor");
  OpDef declaration = *found;
  declaration.set_name(absl::StrCat("Composite", tf_op));
  declaration.clear_deprecation();
  // TensorFlow's optimizer would rewrite nodes by them, as if their meaning were the op's own.
  declaration.clear_is_aggregate();
  declaration.clear_is_commutative();
  TF_RETURN_IF_ERROR(CheckOpDef(declaration));
  return declaration;
}

absl::Status CheckComposition(const Program& program) {
  if (program.composes.empty()) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(OpDef expected, CompositionDeclaration(program.composes));
  if (program.op_def.is_stateful()) {
    return absl::InvalidArgumentError(absl::StrCat("The composition of ", program.composes, " at ",
                                                   program.place, " calls an op that keeps state; ",
                                                   program.composes, " keeps none"));
  }
  OpDef given = program.op_def;
  tensorflow::RemoveDescriptionsFromOpDef(&expected);
  tensorflow::RemoveDescriptionsFromOpDef(&given);
  if (tensorflow::OpDefEqual(expected, given)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("The composition of ", program.composes, " at ", program.place,
                   " was made for another signature than this TensorFlow's; build it again"));
}

absl::optional<NodeDef> CompositionNode(const NodeDef& def, NodeContext context,
                                        FactsOfNode facts) {
  auto version = Registry::Global().Replacement(def.op());
  if (version == nullptr) return absl::nullopt;
  NodeDef node = def;
  node.set_op(version->op_name);
  if (context == NodeContext::kGraph) {
    (*node.mutable_attr())[kProgramAttr].set_s(version->digest);
  }
  // AddN, for one, sums Variants too, in gradients of loops that nobody wrote.
  auto expansion = GetExpansion(version, tensorflow::AttrSlice(node), facts(node));
  if (!expansion.ok() && !IsNotYet(expansion.status())) {
    VLOG(1) << def.op() << " " << def.name() << " stays: " << expansion.status();
    return absl::nullopt;
  }
  Count(GlobalStats().replaced);
  return node;
}

absl::flat_hash_set<std::string> FunctionsOfXla(const FunctionLibraryDefinition& library) {
  absl::flat_hash_set<std::string> functions;
  for (const std::string& name : library.ListFunctionNames()) {
    auto record = library.FindRecord(name);
    if (record == nullptr) continue;
    const FunctionDef& function = record->fdef();
    if (IsTrue(function.attr(), kXlaAttr)) AddReachable(library, name, &functions);
    for (const NodeDef& node : function.node_def()) {
      if (!IsTrue(node.attr(), kXlaAttr)) continue;
      auto callee = node.attr().find("f");
      if (callee != node.attr().end()) {
        AddReachable(library, callee->second.func().name(), &functions);
      }
    }
  }
  return functions;
}

absl::flat_hash_set<std::string> FunctionsOfLoops(const FunctionLibraryDefinition& library) {
  absl::flat_hash_set<std::string> functions;
  for (const std::string& name : library.ListFunctionNames()) {
    auto record = library.FindRecord(name);
    if (record == nullptr) continue;
    for (const NodeDef& node : record->fdef().node_def()) {
      if (TraitsOf(node.op()).runs != Runs::kLoop) continue;
      for (const char* part : {"body", "cond"}) {
        auto function = node.attr().find(part);
        if (function == node.attr().end()) continue;
        AddReachable(library, function->second.func().name(), &functions);
      }
    }
  }
  return functions;
}

bool KeepsTfOps(const FunctionDef& function) {
  return IsTrue(function.attr(), kXlaAttr) || IsMade(function);
}

bool IsMade(const FunctionDef& function) {
  const std::string& name = function.signature().name();
  return absl::StartsWith(name, kMadePrefix) || absl::StrContains(name, kBackwardName);
}

bool IsEagerWrapper(const FunctionDef& function) {
  return absl::StartsWith(function.signature().name(), "__wrapped__");
}

}  // namespace composite
