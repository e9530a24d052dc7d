#include "composite/runtime/tensorflow/constant_inputs.h"

#include <set>
#include <string>
#include <utility>

#include "composite/runtime/kernels/options.h"
#include "composite/runtime/kernels/packing.h"
#include "composite/runtime/program/node_attrs.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::NodeDef;

// Adds to the inputs that the attribute lists already: what was known stays true. Returns whether
// that changed anything.
bool Stamp(const std::string& name, std::set<int64_t> inputs, NodeDef* def) {
  if (const AttrValue* known = AttrSlice(*def).Find(name)) {
    inputs.insert(known->list().i().begin(), known->list().i().end());
    if (inputs.size() == static_cast<size_t>(known->list().i_size())) return false;
  }
  if (inputs.empty()) return false;
  AttrValue all;
  for (int64_t input : inputs) all.mutable_list()->add_i(input);
  (*def->mutable_attr())[name] = std::move(all);
  return true;
}

}  // namespace

void InputSources::Add(int input, absl::string_view op) {
  if (op == "ReadVariableOp") variables.push_back(input);
  if (op == "_Arg") arguments.push_back(input);
}

absl::optional<NodeDef> WithConstants(const NodeDef& def, absl::Span<const InputFact> facts,
                                      const InputSources& sources) {
  if (AttrSlice(def).Find(kProgramAttr) == nullptr) return absl::nullopt;
  std::set<int64_t> fixed;
  for (size_t i = 0; i < facts.size(); ++i) {
    const tensorflow::Tensor* constant = facts[i].constant;
    if (constant != nullptr && IsWorthPacking(*constant)) fixed.insert(static_cast<int64_t>(i));
  }
  // Of a composite that is not known here there are no facts, and nothing is noted.
  const auto packable = [&](const std::vector<int>& inputs) {
    std::set<int64_t> found;
    for (int i : inputs) {
      if (i < static_cast<int>(facts.size()) && MayBePacked(facts[i].dtype)) found.insert(i);
    }
    return found;
  };
  NodeDef stamped = def;
  bool is_new = Stamp(kConstantsAttr, std::move(fixed), &stamped);
  is_new |= Stamp(kVariablesAttr, packable(sources.variables), &stamped);
  // Kernels are measured with inputs that stay the same, and must not be packed for that.
  if (AttrSlice(def).Find(kUncountedAttr) == nullptr) {
    is_new |= Stamp(kArgumentsAttr, packable(sources.arguments), &stamped);
  }
  return is_new ? absl::make_optional(std::move(stamped)) : absl::nullopt;
}

}  // namespace composite
