#include "composite/runtime/tensorflow/constant_inputs.h"

#include <set>
#include <string>
#include <utility>

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

absl::optional<NodeDef> WithConstants(const NodeDef& def, absl::Span<const InputFact> facts,
                                      absl::Span<const int> variables) {
  if (AttrSlice(def).Find(kProgramAttr) == nullptr) return absl::nullopt;
  std::set<int64_t> fixed, read;
  for (size_t i = 0; i < facts.size(); ++i) {
    const tensorflow::Tensor* constant = facts[i].constant;
    if (constant != nullptr && IsWorthPacking(*constant)) fixed.insert(static_cast<int64_t>(i));
  }
  for (int i : variables) {
    if (MayBePacked(facts[i].dtype)) read.insert(i);
  }
  NodeDef stamped = def;
  const bool constants = Stamp(kConstantsAttr, std::move(fixed), &stamped);
  if (!Stamp(kVariablesAttr, std::move(read), &stamped) && !constants) return absl::nullopt;
  return stamped;
}

}  // namespace composite
