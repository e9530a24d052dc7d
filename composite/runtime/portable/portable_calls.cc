#include "composite/runtime/portable/portable_calls.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/program/signature.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using tensorflow::OpDef;
using tensorflow::OpRegistry;
using Renamed = absl::flat_hash_map<std::string, std::string>;

// On a call; composite/saving/portable.py has the same names.
constexpr char kStandsForAttr[] = "_composite_stands_for";  // NodeDef: op and attributes
constexpr char kContentAttr[] = "_composite_content";
constexpr char kCallFunctionAttr[] = "f";

bool IsCall(const NodeDef& node) {
  return node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall";
}

bool HasTypes(const NodeDef& call, const char* attr, const std::vector<FlatArg>& args) {
  std::vector<tensorflow::DataType> types;
  return tensorflow::GetNodeAttr(AttrSlice(call), attr, &types).ok() && types == FlatTypes(args);
}

// Whether this process has the version that a node means. The function of a kFunctionOp comes with
// the graph, and makes a version of its own.
bool IsKnown(const NodeDef& node) {
  return node.op() == kFunctionOp || Registry::Global().Resolve(node.op(), AttrSlice(node)).ok();
}

// Whether a node has the inputs and outputs of `call`.
bool CanTakePlace(const NodeDef& node, const NodeDef& call) {
  const OpDef* op_def = nullptr;
  if (!OpRegistry::Global()->LookUpOpDef(node.op(), &op_def).ok()) return false;
  const auto inputs = Flatten(op_def->input_arg(), AttrSlice(node));
  const auto outputs = Flatten(op_def->output_arg(), AttrSlice(node));
  return inputs.ok() && outputs.ok() && HasTypes(call, "Tin", *inputs) &&
         HasTypes(call, "Tout", *outputs);
}

// Each output of a call, as a function names it: its name once the node has the place.
void NameOutputs(const NodeDef& node, Renamed* renamed) {
  const OpDef* op_def = nullptr;
  if (!OpRegistry::Global()->LookUpOpDef(node.op(), &op_def).ok()) return;
  const auto outputs = Flatten(op_def->output_arg(), AttrSlice(node));
  if (!outputs.ok()) return;
  int position = 0;
  for (const FlatArg& arg : *outputs) {
    for (size_t k = 0; k < arg.types.size(); ++k) {
      (*renamed)[absl::StrCat(node.name(), ":output:", position++)] =
          absl::StrCat(node.name(), ":", arg.name, ":", k);
    }
  }
}

void Rename(const Renamed& renamed, std::string* reference) {
  auto known = renamed.find(*reference);
  if (known != renamed.end()) *reference = known->second;
}

}  // namespace

absl::optional<NodeDef> PortableCalls::NodeOf(const NodeDef& call) {
  if (!IsCall(call)) return absl::nullopt;
  const AttrSlice attrs(call);
  const tensorflow::AttrValue* stands_for = attrs.Find(kStandsForAttr);
  const tensorflow::AttrValue* content = attrs.Find(kContentAttr);
  const tensorflow::AttrValue* function = attrs.Find(kCallFunctionAttr);
  if (stands_for == nullptr || content == nullptr || function == nullptr) return absl::nullopt;
  NodeDef node;
  if (!node.ParseFromString(stands_for->s()) || !IsKnown(node)) return absl::nullopt;
  if (DigestOf(function->func().name()) != content->s()) return absl::nullopt;
  node.set_name(call.name());
  node.set_device(call.device());
  *node.mutable_input() = call.input();
  *node.mutable_experimental_debug_info() = call.experimental_debug_info();
  for (const auto& [name, value] : call.attr()) {
    const bool ours = absl::StartsWith(name, "_composite_");
    if (absl::StartsWith(name, "_") && !ours) (*node.mutable_attr())[name] = value;
  }
  // Loaders give functions other names.
  if (node.op() == kFunctionOp) (*node.mutable_attr())[kFunctionAttr] = *function;
  return CanTakePlace(node, call) ? absl::make_optional(std::move(node)) : absl::nullopt;
}

absl::optional<FunctionDef> PortableCalls::Restored(const FunctionDef& function) {
  absl::optional<FunctionDef> restored;
  Renamed renamed;
  for (int i = 0; i < function.node_def_size(); ++i) {
    absl::optional<NodeDef> node = NodeOf(function.node_def(i));
    if (!node.has_value()) continue;
    NameOutputs(*node, &renamed);
    if (!restored.has_value()) restored = function;
    *restored->mutable_node_def(i) = *std::move(node);
  }
  if (!restored.has_value()) return absl::nullopt;
  for (NodeDef& node : *restored->mutable_node_def()) {
    for (std::string& input : *node.mutable_input()) Rename(renamed, &input);
  }
  for (auto& [name, value] : *restored->mutable_ret()) Rename(renamed, &value);
  return restored;
}

const std::string& PortableCalls::DigestOf(const std::string& function) {
  auto [known, is_new] = digests_.try_emplace(function);
  const FunctionDef* found = is_new ? library_.Find(function) : nullptr;
  if (found != nullptr) known->second = FunctionDigest(ReachedFrom(library_, *found));
  return known->second;
}

}  // namespace composite
