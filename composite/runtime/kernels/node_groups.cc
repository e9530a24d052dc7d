#include "composite/runtime/kernels/node_groups.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "composite/runtime/kernels/kernel_table.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/node_attrs.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;

std::vector<int> Positions(const AttrValue* inputs) {
  if (inputs == nullptr) return {};
  return {inputs->list().i().begin(), inputs->list().i().end()};
}

}  // namespace

std::vector<int> VariableInputs(AttrSlice attrs) { return Positions(attrs.Find(kVariablesAttr)); }

std::vector<int> ArgumentInputs(AttrSlice attrs) { return Positions(attrs.Find(kArgumentsAttr)); }

std::vector<NodeGroup> GroupsOf(const OpVersion& version, AttrSlice attrs, const Device& device,
                                bool invariant) {
  KernelTable& table = KernelTable::Global();
  const KernelKind kind{device.name(), invariant};
  if (!kind.device.empty()) return {{table.Group(version, attrs, nullptr, kind), Needs::kNothing}};
  const AttrValue* constants = attrs.Find(kConstantsAttr);
  std::vector<int> every = VariableInputs(attrs);
  std::vector<NodeGroup> groups;
  if (!every.empty()) {
    const std::vector<int> fixed = Positions(constants);
    // A variable that was frozen since is among both.
    every.insert(every.end(), fixed.begin(), fixed.end());
    std::sort(every.begin(), every.end());
    every.erase(std::unique(every.begin(), every.end()), every.end());
    AttrValue known;
    for (int input : every) known.mutable_list()->add_i(input);
    groups.push_back({table.Group(version, attrs, &known, kind), Needs::kRest});
  }
  if (constants != nullptr) {
    groups.push_back({table.Group(version, attrs, constants, kind), Needs::kConstants});
  }
  groups.push_back({table.Group(version, attrs, nullptr, kind), Needs::kNothing});
  return groups;
}

Caller CallerOf(const OpVersion& version, DtypeSet dtypes, bool measuring) {
  Caller caller;
  caller.dtypes = dtypes;
  caller.derived = version.function != nullptr && !absl::StartsWith(version.digest, kRegionPrefix);
  caller.measuring = measuring;
  caller.compiler.lowers = version.kernel_possible.load(std::memory_order_relaxed);
  caller.compiler.dtypes = CompiledDtypes();
  caller.compiler.allowed = JitAllowed();
  caller.compiler.running = KernelTable::Global().worker_running();
  return caller;
}

size_t GroupSnapshots::size() {
  if (groups_.empty()) groups_ = GroupsOf(version_, attrs_, device_, invariant_);
  return groups_.size();
}

bool GroupSnapshots::Deterministic() { return DeterminismRequired(); }

}  // namespace composite
