#include "composite/runtime/tensorflow/constant_inputs.h"

#include <set>
#include <string>
#include <utility>

#include "composite/runtime/program/node_attrs.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::NodeDef;

constexpr int64_t kFewestElements = 256;

// Of what products pack: floats, and integers that stand for them.
bool IsPacked(tensorflow::DataType dtype) {
  return tensorflow::DataTypeIsFloating(dtype) || dtype == tensorflow::DT_INT8 ||
         dtype == tensorflow::DT_UINT8 || dtype == tensorflow::DT_INT16;
}

bool IsWorthPacking(const InputFact& fact) {
  return fact.constant != nullptr && IsPacked(fact.dtype) && fact.constant->dims() >= 2 &&
         fact.constant->NumElements() >= kFewestElements;
}

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
    if (IsWorthPacking(facts[i])) fixed.insert(static_cast<int64_t>(i));
  }
  for (int i : variables) {
    if (IsPacked(facts[i].dtype)) read.insert(i);
  }
  NodeDef stamped = def;
  const bool constants = Stamp(kConstantsAttr, std::move(fixed), &stamped);
  if (!Stamp(kVariablesAttr, std::move(read), &stamped) && !constants) return absl::nullopt;
  return stamped;
}

}  // namespace composite
