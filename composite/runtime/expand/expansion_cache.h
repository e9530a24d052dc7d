// Expansions that were made, found again by what their evaluation read. Bounded: an op that reads a
// dim has one for each size that it met, and a process may meet ten thousand sentence lengths.
#ifndef COMPOSITE_RUNTIME_EXPAND_EXPANSION_CACHE_H_
#define COMPOSITE_RUNTIME_EXPAND_EXPANSION_CACHE_H_

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/facts.h"

namespace composite {

// Thread-safe. Least recently used expansions go first.
class ExpansionCache {
 public:
  explicit ExpansionCache(size_t capacity) : capacity_(capacity) {}

  static ExpansionCache& Global();

  // `base` is everything that every evaluation depends on: program, attributes, dtypes. Null when
  // no expansion agrees with the facts.
  std::shared_ptr<const Expansion> Find(const std::string& base, absl::Span<const InputFact> facts)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the one to use: another thread may have been first with an equal one.
  std::shared_ptr<const Expansion> Insert(const std::string& base,
                                          std::shared_ptr<const Expansion> expansion,
                                          absl::Span<const InputFact> facts)
      ABSL_LOCKS_EXCLUDED(mu_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    std::string base;
    std::string read_set;  // which facts
    std::string values;    // what they were
    std::shared_ptr<const Expansion> expansion;
  };
  using Order = std::list<Entry>;  // most recent first

  // Evaluations of one base that read the same facts differ in the values alone.
  struct ReadSet {
    std::string name;
    std::vector<ReadFact> reads;
    absl::flat_hash_map<std::string, Order::iterator> by_values;
  };

  static std::string NameOf(absl::Span<const ReadFact> reads);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t capacity_;
  mutable ForkMutex mu_;
  Order order_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, std::vector<ReadSet>> by_base_ ABSL_GUARDED_BY(mu_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_EXPANSION_CACHE_H_
