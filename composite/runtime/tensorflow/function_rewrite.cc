#include "composite/runtime/tensorflow/function_rewrite.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/program/signature.h"
#include "composite/runtime/tensorflow/call_names.h"
#include "composite/runtime/tensorflow/final_call.h"
#include "composite/runtime/tensorflow/saving_forward.h"
#include "composite/runtime/tensorflow/stand_in.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;

class Rewriter {
 public:
  Rewriter(const FunctionDef& function, const RewriteOptions& options,
           std::vector<std::shared_ptr<const Expansion>>* used)
      : function_(function), options_(options), used_(*used) {}

  absl::optional<FunctionDef> Run() {
    absl::optional<FunctionDef> changed;
    for (int i = 0; i < function_.node_def_size(); ++i) {
      auto node = Rewritten(function_.node_def(i));
      if (!node.has_value()) continue;
      if (!changed.has_value()) changed = function_;
      *changed->mutable_node_def(i) = *std::move(node);
    }
    if (!changed.has_value()) return absl::nullopt;
    FunctionDef& result = *changed;
    for (NodeDef& call : renamed_) *result.add_node_def() = std::move(call);
    for (NodeDef& node : *result.mutable_node_def()) {
      for (std::string& input : *node.mutable_input()) Rename(&input);
    }
    for (auto& [name, value] : *result.mutable_ret()) Rename(&value);
    return changed;
  }

 private:
  using Bases = absl::flat_hash_map<std::string, int>;

  // What takes the node's place; empty if it stays.
  absl::optional<NodeDef> Rewritten(const NodeDef& original) {
    if (auto identity = identities_.find(original.name()); identity != identities_.end()) {
      return RememberOutputs(original) ? absl::make_optional(identity->second) : absl::nullopt;
    }
    auto rewrite = RewriteNode(
        original, options_, [this](const NodeDef& node) { return FactsOf(node); },
        [this](const NodeDef& node) { return SourcesOf(node); });
    if (!rewrite) return absl::nullopt;
    if (rewrite->expansion != nullptr && RememberOutputs(rewrite->composite)) {
      NodeDef call = Call(rewrite->composite, *rewrite->expansion);
      used_.push_back(std::move(rewrite->expansion));
      return call;
    }
    if (!rewrite->is_composition && !rewrite->is_stamped) return absl::nullopt;
    return std::move(rewrite->composite);
  }

  // What takes the place of `node`: the call, or a stand-in for one that has to have another name.
  NodeDef Call(const NodeDef& node, const Expansion& expansion) {
    if (!names_) names_.emplace(function_);
    NodeDef call = CallNode(node, expansion);
    call.set_name(names_->Take(node.name(), expansion));
    if (call.name() == node.name()) return call;
    std::vector<tensorflow::DataType> types;
    for (int type : call.attr().at("Tout").list().type()) {
      types.push_back(static_cast<tensorflow::DataType>(type));
    }
    NodeDef stand_in = StandIn(node.name(), node.device(), types);
    for (size_t i = 0; i < types.size(); ++i) {
      stand_in.add_input(absl::StrCat(call.name(), ":output:", i));
    }
    if (types.empty()) stand_in.add_input(absl::StrCat("^", call.name()));
    renamed_.push_back(std::move(call));
    return stand_in;
  }

  // Where each output arg of a replaced node begins among the call's outputs.
  bool RememberOutputs(const NodeDef& node) {
    auto version = Registry::Global().Resolve(node.op(), AttrSlice(node));
    if (!version.ok()) return false;
    auto outputs = Flatten((*version)->op_def.output_arg(), AttrSlice(node));
    if (!outputs.ok()) return false;
    Bases& bases = replaced_[node.name()];
    int next = 0;
    for (const FlatArg& arg : *outputs) {
      bases[arg.name] = next;
      next += static_cast<int>(arg.types.size());
    }
    return true;
  }

  // "node:arg:k" to "node:output:base+k", the one output arg of a call.
  void Rename(std::string* input) const {
    if (absl::StartsWith(*input, "^")) return;
    const std::vector<std::string> parts = absl::StrSplit(*input, ':');
    auto it = replaced_.find(parts[0]);
    int index = 0;
    if (it == replaced_.end() || parts.size() < 2) return;
    if (parts.size() > 2 && !absl::SimpleAtoi(parts[2], &index)) return;
    auto base = it->second.find(parts[1]);
    if (base == it->second.end()) return;
    *input = absl::StrCat(parts[0], ":output:", base->second + index);
  }

  std::vector<InputFact> FactsOf(const NodeDef& node) {
    std::vector<InputFact> facts;
    auto version = Registry::Global().Resolve(node.op(), AttrSlice(node));
    if (!version.ok()) return facts;
    auto inputs = Flatten((*version)->op_def.input_arg(), AttrSlice(node));
    if (!inputs.ok()) return facts;
    const auto types = FlatTypes(*inputs);
    if (node.input_size() < static_cast<int>(types.size())) return facts;
    for (size_t i = 0; i < types.size(); ++i) facts.push_back(FactOf(node.input(i), types[i]));
    return facts;
  }

  std::string OriginOf(const std::string& input) const {
    return Origin(input, nodes_.size(),
                  [this](const std::string& name) -> absl::optional<std::string> {
                    auto node = nodes_.find(name.substr(0, name.find(':')));
                    const bool passes = node != nodes_.end() && node->second->op() == "Identity" &&
                                        node->second->input_size() > 0;
                    return passes ? absl::make_optional(node->second->input(0)) : absl::nullopt;
                  });
  }

  InputFact FactOf(const std::string& given, tensorflow::DataType type) {
    IndexProducers();
    const std::string input = OriginOf(given);
    const std::vector<std::string> parts = absl::StrSplit(input, ':');
    if (auto arg = args_.find(parts[0]); arg != args_.end()) {
      auto attrs = function_.arg_attr().find(arg->second);
      if (attrs == function_.arg_attr().end()) return {type, {}, nullptr};
      return FactFromProducer("_Arg", AttrSlice(&attrs->second.attr()), 0, type, &constants_);
    }
    auto node = nodes_.find(parts[0]);
    // Which output of a node with several "a:b:c" is would need its OpDef; only Const matters here.
    if (node == nodes_.end() || node->second->op() != "Const") return {type, {}, nullptr};
    return FactFromProducer("Const", AttrSlice(*node->second), 0, type, &constants_);
  }

  InputSources SourcesOf(const NodeDef& node) {
    IndexProducers();
    InputSources sources;
    for (int i = 0; i < node.input_size(); ++i) {
      if (!absl::StartsWith(node.input(i), "^")) sources.Add(i, OpBehind(node.input(i)));
    }
    return sources;
  }

  // The op that gives a tensor, maybe through Identity; "_Arg" for an argument.
  std::string OpBehind(const std::string& given) const {
    const std::string input = OriginOf(given);
    const std::string name = input.substr(0, input.find(':'));
    if (args_.contains(name)) return "_Arg";
    auto node = nodes_.find(name);
    return node == nodes_.end() ? "" : node->second->op();
  }

  void IndexProducers() {
    if (!nodes_.empty()) return;
    for (int i = 0; i < function_.signature().input_arg_size(); ++i) {
      args_[function_.signature().input_arg(i).name()] = i;
    }
    for (const NodeDef& node : function_.node_def()) nodes_[node.name()] = &node;
  }

  const FunctionDef& function_;
  const absl::flat_hash_map<std::string, NodeDef> identities_ = SavingForwardIdentities(function_);
  const RewriteOptions options_;
  std::vector<std::shared_ptr<const Expansion>>& used_;
  absl::flat_hash_map<std::string, Bases> replaced_;
  absl::optional<CallNames> names_;
  std::vector<NodeDef> renamed_;  // calls that do not have the name of what they replace
  absl::flat_hash_map<std::string, int> args_;
  absl::flat_hash_map<std::string, const NodeDef*> nodes_;
  std::vector<std::unique_ptr<tensorflow::Tensor>> constants_;
};

}  // namespace

absl::optional<FunctionDef> RewriteFunction(const FunctionDef& function,
                                            const RewriteOptions& options,
                                            std::vector<std::shared_ptr<const Expansion>>* used) {
  return Rewriter(function, options, used).Run();
}

}  // namespace composite
