#include "composite/runtime/expand/expansion_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace composite {
namespace {

// An expansion holds tens of kilobytes, and about 0.1 MB once a node has instantiated it.
constexpr size_t kMostExpansions = 256;

}  // namespace

ExpansionCache& ExpansionCache::Global() {
  static auto* cache = new ExpansionCache(kMostExpansions);
  return *cache;
}

std::string ExpansionCache::NameOf(absl::Span<const ReadFact> reads) {
  std::string name;
  for (const ReadFact& read : reads) absl::StrAppend(&name, read.input, ",", read.what, ";");
  return name;
}

std::shared_ptr<const Expansion> ExpansionCache::Find(const std::string& base,
                                                      absl::Span<const InputFact> facts) {
  absl::MutexLock lock(mu_);
  auto found = by_base_.find(base);
  if (found == by_base_.end()) return nullptr;
  for (ReadSet& set : found->second) {
    auto it = set.by_values.find(ReadsKey(set.reads, facts));
    if (it == set.by_values.end()) continue;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->expansion;
  }
  return nullptr;
}

std::shared_ptr<const Expansion> ExpansionCache::Insert(const std::string& base,
                                                        std::shared_ptr<const Expansion> expansion,
                                                        absl::Span<const InputFact> facts) {
  absl::MutexLock lock(mu_);
  const std::string name = NameOf(expansion->reads);
  std::string values = ReadsKey(expansion->reads, facts);
  std::vector<ReadSet>& sets = by_base_[base];
  auto set = std::find_if(sets.begin(), sets.end(), [&](auto& s) { return s.name == name; });
  if (set == sets.end()) set = sets.insert(sets.end(), {name, expansion->reads, {}});
  auto it = set->by_values.find(values);
  if (it != set->by_values.end()) return it->second->expansion;
  order_.push_front({base, name, values, expansion});
  set->by_values.emplace(std::move(values), order_.begin());
  if (order_.size() > capacity_) DropOldest();
  return expansion;
}

void ExpansionCache::DropOldest() {
  const Entry& oldest = order_.back();
  auto found = by_base_.find(oldest.base);
  std::vector<ReadSet>& sets = found->second;
  auto set =
      std::find_if(sets.begin(), sets.end(), [&](auto& s) { return s.name == oldest.read_set; });
  set->by_values.erase(oldest.values);
  if (set->by_values.empty()) sets.erase(set);
  if (sets.empty()) by_base_.erase(found);
  order_.pop_back();
}

size_t ExpansionCache::size() const {
  absl::MutexLock lock(mu_);
  return order_.size();
}

}  // namespace composite
