#include "composite/runtime/regions/region_counts.h"

#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "composite/runtime/program/node_attrs.h"

namespace composite {
namespace {

constexpr size_t kMostRegions = 4096;

struct Counts {
  ForkMutex mutex;
  std::map<std::string, std::unique_ptr<RegionCounts>> of ABSL_GUARDED_BY(mutex);
};

Counts& All() {
  static Counts* const counts = new Counts();  // never destroyed: threads may outlive main
  return *counts;
}

// What a call of these values gains by its kernel, as far as that was measured.
float SavedUs(const KernelRecord& record, const SymbolValues& values) {
  if (record.verdict == Verdict::kUnmeasured) return 0;
  const Measured* point = record.decisions.Nearest(values);
  if (point == nullptr || record.symbols() == 0) return record.expansion_us - record.kernel_us;
  return point->expansion_us - point->kernel_us;
}

}  // namespace

void RegionCounts::NoteKernel(const Choice& choice) {
  Count(kernel_);
  Count(saved_ns_, static_cast<int64_t>(1000 * SavedUs(choice.kernel->record, choice.values)));
}

void RegionCounts::NoteExpansion(Why why, bool asked, absl::FunctionRef<std::string()> sentence) {
  Count(expansion_);
  const int code = 2 * static_cast<int>(why) + (asked ? 1 : 0);
  if (last_why_.exchange(code, std::memory_order_relaxed) == code) return;
  std::string text = sentence();
  absl::MutexLock lock(mu_);
  why_ = std::move(text);
}

RegionCount RegionCounts::Read(bool reset) {
  const auto read = [reset](Counter& counter) {
    return reset ? counter.exchange(0) : counter.load();
  };
  RegionCount found;
  found.kernel = read(kernel_);
  found.expansion = read(expansion_);
  found.saved_us = static_cast<double>(read(saved_ns_)) / 1000;
  absl::MutexLock lock(mu_);
  found.why = why_;
  if (reset) {
    why_.clear();
    last_why_.store(-1, std::memory_order_relaxed);
  }
  return found;
}

RegionCounts* CountsOf(absl::string_view function) {
  if (!absl::StartsWith(function, kRegionPrefix)) return nullptr;
  Counts& counts = All();
  absl::MutexLock lock(counts.mutex);
  auto known = counts.of.find(std::string(function));
  if (known != counts.of.end()) return known->second.get();
  if (counts.of.size() >= kMostRegions) return nullptr;
  return (counts.of[std::string(function)] = std::make_unique<RegionCounts>()).get();
}

std::vector<RegionCount> ReadRegionCounts(bool reset) {
  std::vector<RegionCount> found;
  Counts& counts = All();
  absl::MutexLock lock(counts.mutex);
  for (const auto& [function, of_one] : counts.of) {
    RegionCount count = of_one->Read(reset);
    if (count.kernel + count.expansion == 0) continue;
    count.function = function;
    found.push_back(std::move(count));
  }
  return found;
}

}  // namespace composite
