#include "composite/runtime/tensorflow/node_rewrite.h"

#include <utility>

#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

using tensorflow::NodeDef;

bool MayRewrite(const std::string& op, const RewriteOptions& options) {
  const Registry& registry = Registry::Global();
  return registry.Contains(op) || (options.compositions && registry.Replacement(op) != nullptr);
}

absl::optional<NodeRewrite> RewriteNode(const NodeDef& node, const RewriteOptions& options,
                                        FactsOfNode facts, SourcesOfNode sources) {
  // Its kernel finds out what it computes.
  if (IsAltered(tensorflow::AttrSlice(node))) return absl::nullopt;
  NodeRewrite rewrite;
  absl::optional<NodeDef> composition;
  if (options.compositions) composition = CompositionNode(node, options.context, facts);
  if (!composition && !Registry::Global().Contains(node.op())) return absl::nullopt;
  rewrite.is_composition = composition.has_value();
  rewrite.composite = composition ? *std::move(composition) : node;
  std::vector<InputFact> known = facts(rewrite.composite);
  auto stamped = WithConstants(rewrite.composite, known, sources(rewrite.composite));
  rewrite.is_stamped = stamped.has_value();
  if (stamped) rewrite.composite = *std::move(stamped);
  if (options.of_xla) return rewrite;
  const Device device = PlacedOn(rewrite.composite.device(), options.devices);
  rewrite.expansion = FinalExpansion(rewrite.composite, std::move(known), device);
  return rewrite;
}

}  // namespace composite
