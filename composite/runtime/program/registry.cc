#include "composite/runtime/program/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/program/node_attrs.h"

namespace composite {

Registry& Registry::Global() {
  static auto* registry = new Registry();
  return *registry;
}

void Registry::MakeCurrent(std::shared_ptr<OpVersion> version) {
  absl::MutexLock lock(mu_);
  Versions& versions = ops_[version->op_name];
  version->kernel_possible = KernelPossible(*version);
  auto [it, is_new] = versions.by_digest.emplace(version->digest, nullptr);
  if (is_new) it->second = std::move(version);
  versions.current = it->second;
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void Registry::Add(std::shared_ptr<OpVersion> version) {
  absl::MutexLock lock(mu_);
  version->kernel_possible = KernelPossible(*version);
  ops_[version->op_name].by_digest.emplace(version->digest, std::move(version));
}

void Registry::SetReplacement(const std::string& tf_op, const std::string& op_name, bool replaces) {
  absl::MutexLock lock(mu_);
  if (replaces) {
    replacements_[tf_op] = op_name;
  } else {
    replacements_.erase(tf_op);
  }
  has_replacements_.store(!replacements_.empty(), std::memory_order_release);
}

std::shared_ptr<const OpVersion> Registry::Replacement(absl::string_view tf_op) const {
  if (!has_replacements()) return nullptr;
  absl::ReaderMutexLock lock(mu_);
  auto it = replacements_.find(tf_op);
  return it == replacements_.end() ? nullptr : ops_.find(it->second)->second.current;
}

bool Registry::KernelPossible(const OpVersion& version) const {
  return !kernel_ops_.empty() &&
         std::all_of(version.unconditional_ops.begin(), version.unconditional_ops.end(),
                     [&](const std::string& op) { return kernel_ops_.contains(op); });
}

std::optional<std::vector<std::string>> Registry::OpsWithoutLowering(
    const OpVersion& version) const {
  absl::ReaderMutexLock lock(mu_);
  if (kernel_ops_.empty()) return std::nullopt;
  std::vector<std::string> found;
  for (const std::string& op : version.unconditional_ops) {
    if (!kernel_ops_.contains(op)) found.push_back(op);
  }
  return found;
}

void Registry::SetKernelOps(const std::vector<std::string>& ops) {
  absl::MutexLock lock(mu_);
  kernel_ops_ = absl::flat_hash_set<std::string>(ops.begin(), ops.end());
  for (auto& [name, versions] : ops_) {
    for (auto& [digest, version] : versions.by_digest) {
      version->kernel_possible = KernelPossible(*version);
    }
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

absl::StatusOr<std::shared_ptr<const OpVersion>> Registry::Current(
    absl::string_view op_name) const {
  return Find(op_name, "");
}

absl::StatusOr<std::shared_ptr<const OpVersion>> Registry::Resolve(
    absl::string_view op_name, tensorflow::AttrSlice attrs) const {
  return Find(op_name, VersionOf(attrs.Find(VersionAttr(op_name))));
}

absl::StatusOr<std::shared_ptr<const OpVersion>> Registry::Find(absl::string_view op_name,
                                                                absl::string_view digest) const {
  absl::ReaderMutexLock lock(mu_);
  auto op = ops_.find(op_name);
  if (op == ops_.end()) {
    return absl::NotFoundError(absl::StrCat("There is no composite op ", op_name,
                                            " in this process; import the module or load the "
                                            "library that defines it"));
  }
  if (digest.empty() && op->second.current != nullptr) return op->second.current;
  auto version = op->second.by_digest.find(digest);
  if (version != op->second.by_digest.end()) return version->second;
  if (op_name == kFunctionOp) {
    return absl::NotFoundError(
        absl::StrCat("The function \"", digest, "\" of a CompositeCall is not in this process"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("The node of ", op_name, " was made with another body (", digest.substr(0, 8),
                   ") than the one at ", DefinitionOf(*op->second.current), " (",
                   op->second.current->digest.substr(0, 8),
                   "); load the library or the source that the model was made with"));
}

bool Registry::Contains(absl::string_view op_name) const {
  absl::ReaderMutexLock lock(mu_);
  return ops_.contains(op_name);
}

bool Registry::empty() const {
  absl::ReaderMutexLock lock(mu_);
  return ops_.empty();
}

}  // namespace composite
