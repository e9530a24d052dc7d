#include "composite/runtime/kernels/kernel_families.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/record_tables.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/program/node_attrs.h"

namespace composite {
namespace {

using tensorflow::NodeDef;

// Families that are looked at to tell which attribute varies.
constexpr int kMostLookedAt = 256;

// Each region is an op of its own, although the names of all have one stem.
bool IsRegion(const OpVersion& version) { return absl::StartsWith(version.digest, kRegionPrefix); }

// Whose families are let go together. Functions are versions of one op; those with one stem were
// derived from one op of the user's ("__composite_backward_Dense_<hash>"), one for each value of
// its attributes. Regions come and go with the functions that they are in: all of a process are
// here.
std::string OpKey(const OpVersion& version) {
  if (version.function == nullptr) return version.digest;
  return version.digest.substr(0, version.digest.rfind('_'));
}

// Equal for groups that differ in their constants alone; the fields of a proto map have no fixed
// order.
std::string FamilyKey(const OpVersion& version, const NodeDef& description) {
  std::string key = version.digest;
  for (const auto& declared : version.op_def.attr()) {
    absl::StrAppend(&key, "\n", declared.name(), "=",
                    description.attr().at(declared.name()).SerializeAsString());
  }
  auto device = description.attr().find(kDeviceField);
  if (device != description.attr().end()) absl::StrAppend(&key, "\non ", device->second.s());
  if (description.attr().count(kInvariantField) != 0) absl::StrAppend(&key, "\ninvariant");
  return key;
}

bool IsIdle(const KernelFamily& family) {
  return !family.is_built &&
         std::all_of(family.groups.begin(), family.groups.end(),
                     [](const auto& group) { return group.second.use_count() == 1; });
}

int64_t GroupsWithRequests(const KernelFamily& family) {
  return std::count_if(family.groups.begin(), family.groups.end(), [](const auto& group) {
    const KernelSnapshot& snapshot = group.second->snapshot();
    return !snapshot.classes.empty() || !snapshot.kernels.empty();
  });
}

}  // namespace

NodeDef Describe(const OpVersion& version, tensorflow::AttrSlice attrs,
                 const tensorflow::AttrValue* constants, const KernelKind& kind) {
  NodeDef node;
  node.set_op(version.op_name);
  for (const auto& declared : version.op_def.attr()) {
    const tensorflow::AttrValue* value = attrs.Find(declared.name());
    (*node.mutable_attr())[declared.name()] = value != nullptr ? *value : declared.default_value();
  }
  (*node.mutable_attr())[kProgramAttr].set_s(version.digest);
  if (constants != nullptr) (*node.mutable_attr())[kConstantsAttr] = *constants;
  if (!kind.device.empty()) (*node.mutable_attr())[kDeviceField].set_s(kind.device);
  if (kind.invariant) (*node.mutable_attr())[kInvariantField].set_b(true);
  return node;
}

KernelFamily& KernelFamilies::Get(const OpVersion& version, const NodeDef& description,
                                  std::vector<KernelFamily>* dropped) {
  Op& op = ops_[OpKey(version)];
  std::string key = FamilyKey(version, description);
  auto found = op.families.find(key);
  if (found == op.families.end()) {
    if (op.families.size() >= op.sweep_at) Sweep(&op, dropped);
    found = op.families.emplace(std::move(key), KernelFamily()).first;
    found->second.budget = IsRegion(version) ? std::make_shared<RequestBudget>() : op.budget;
  }
  found->second.last_use = ++clock_;
  return found->second;
}

const KernelFamily* KernelFamilies::Find(const OpVersion& version,
                                         const NodeDef& description) const {
  auto op = ops_.find(OpKey(version));
  if (op == ops_.end()) return nullptr;
  auto found = op->second.families.find(FamilyKey(version, description));
  return found == op->second.families.end() ? nullptr : &found->second;
}

void KernelFamilies::Sweep(Op* op, std::vector<KernelFamily>* dropped) {
  std::vector<std::map<std::string, KernelFamily>::iterator> idle;
  for (auto it = op->families.begin(); it != op->families.end(); ++it) {
    if (IsIdle(it->second)) idle.push_back(it);
  }
  if (idle.size() > kIdle) {
    std::sort(idle.begin(), idle.end(),
              [](auto a, auto b) { return a->second.last_use < b->second.last_use; });
    idle.resize(idle.size() - kIdle);
    for (auto it : idle) {
      Count(GlobalStats().evicted, GroupsWithRequests(it->second));
      dropped->push_back(std::move(it->second));
      op->families.erase(it);
    }
  }
  // So that a family costs a bounded number of looks, however many nodes hold theirs.
  op->sweep_at = op->families.size() + std::max(kIdle, op->families.size());
}

std::pair<std::string, int> KernelFamilies::MostVaried(const OpVersion& version) const {
  std::pair<std::string, int> most{"", 1};
  auto op = ops_.find(OpKey(version));
  if (op == ops_.end() || IsRegion(version)) return most;
  for (const auto& declared : version.op_def.attr()) {
    std::set<std::string> values;
    int left = kMostLookedAt;
    for (const auto& [key, family] : op->second.families) {
      if (family.groups.empty() || --left < 0) continue;
      const NodeDef& request = family.groups.begin()->second->request();
      values.insert(request.attr().at(declared.name()).SerializeAsString());
    }
    if (static_cast<int>(values.size()) > most.second) {
      most = {declared.name(), static_cast<int>(values.size())};
    }
  }
  return most;
}

}  // namespace composite
