#include "composite/runtime/tensorflow/call_names.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace composite {

using tensorflow::NodeDef;

CallNames::CallNames(const tensorflow::Graph& graph) {
  for (const tensorflow::Node* node : graph.op_nodes()) taken_.insert(node->name());
}

CallNames::CallNames(const tensorflow::FunctionDef& function) {
  for (const auto& arg : function.signature().input_arg()) taken_.insert(arg.name());
  for (const NodeDef& node : function.node_def()) taken_.insert(node.name());
}

bool CallNames::IsFree(const std::string& call, const Expansion& expansion) const {
  return absl::c_none_of(expansion.fdef.node_def(), [&](const NodeDef& node) {
    return taken_.contains(absl::StrCat(call, "/", node.name()));
  });
}

std::string CallNames::Take(const std::string& node, const Expansion& expansion) {
  std::string call = node;
  for (int i = 0; !IsFree(call, expansion) || (i > 0 && taken_.contains(call)); ++i) {
    call = absl::StrCat(node, "_call_", i);
  }
  taken_.insert(call);
  for (const NodeDef& inlined : expansion.fdef.node_def()) {
    taken_.insert(absl::StrCat(call, "/", inlined.name()));
  }
  return call;
}

}  // namespace composite
