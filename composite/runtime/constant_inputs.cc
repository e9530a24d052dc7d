#include "composite/runtime/constant_inputs.h"

#include <string>

#include "composite/runtime/registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::NodeDef;

constexpr int64_t kFewestElements = 256;

bool IsWorthPacking(const InputFact& fact) {
  return fact.constant != nullptr && tensorflow::DataTypeIsFloating(fact.dtype) &&
         fact.constant->dims() >= 2 && fact.constant->NumElements() >= kFewestElements;
}

// Returns whether that changed anything.
bool Stamp(const std::string& name, const AttrValue& inputs, NodeDef* def) {
  if (!inputs.has_list()) return false;
  auto known = def->attr().find(name);
  if (known != def->attr().end() &&
      known->second.SerializeAsString() == inputs.SerializeAsString()) {
    return false;
  }
  (*def->mutable_attr())[name] = inputs;
  return true;
}

}  // namespace

absl::optional<NodeDef> WithConstants(const NodeDef& def, absl::Span<const InputFact> facts,
                                      absl::Span<const int> variables) {
  if (AttrSlice(def).Find(kProgramAttr) == nullptr) return absl::nullopt;
  AttrValue fixed, read;
  for (size_t i = 0; i < facts.size(); ++i) {
    if (IsWorthPacking(facts[i])) fixed.mutable_list()->add_i(static_cast<int64_t>(i));
  }
  for (int i : variables) {
    if (tensorflow::DataTypeIsFloating(facts[i].dtype)) read.mutable_list()->add_i(i);
  }
  NodeDef stamped = def;
  const bool constants = Stamp(kConstantsAttr, fixed, &stamped);
  if (!Stamp(kVariablesAttr, read, &stamped) && !constants) return absl::nullopt;
  return stamped;
}

}  // namespace composite
