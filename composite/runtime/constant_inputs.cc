#include "composite/runtime/constant_inputs.h"

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

}  // namespace

absl::optional<NodeDef> WithConstants(const NodeDef& def, absl::Span<const InputFact> facts) {
  if (AttrSlice(def).Find(kProgramAttr) == nullptr) return absl::nullopt;
  AttrValue constants;
  for (size_t i = 0; i < facts.size(); ++i) {
    if (IsWorthPacking(facts[i])) constants.mutable_list()->add_i(static_cast<int64_t>(i));
  }
  if (!constants.has_list()) return absl::nullopt;
  auto known = def.attr().find(kConstantsAttr);
  if (known != def.attr().end() &&
      known->second.SerializeAsString() == constants.SerializeAsString()) {
    return absl::nullopt;
  }
  NodeDef stamped = def;
  (*stamped.mutable_attr())[kConstantsAttr] = constants;
  return stamped;
}

}  // namespace composite
