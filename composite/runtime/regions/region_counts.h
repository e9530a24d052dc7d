// What became of the calls of each region: composite.stats() and reports read it.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_COUNTS_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_COUNTS_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/decide.h"

namespace composite {

struct RegionCount {
  std::string function;
  int64_t kernel = 0;     // calls
  int64_t expansion = 0;  // calls
  double saved_us = 0;    // by the kernels, as they were measured
  std::string why;        // of the last calls that ran the expansion; empty if there were none
};

// Of one region. Thread-safe.
class RegionCounts {
 public:
  void NoteKernel(const Choice& choice);
  // `sentence` is asked when the reason is another than before: `why`, and whether the call asked
  // for a kernel.
  void NoteExpansion(Why why, bool asked, absl::FunctionRef<std::string()> sentence)
      ABSL_LOCKS_EXCLUDED(mu_);

  RegionCount Read(bool reset) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Counter kernel_{0}, expansion_{0}, saved_ns_{0};
  std::atomic<int> last_why_{-1};
  ForkMutex mu_;
  std::string why_ ABSL_GUARDED_BY(mu_);
};

// The counts of the region whose function this is; null for other functions, and beyond so many
// regions as a process may have.
RegionCounts* CountsOf(absl::string_view function);

// Those of all regions that were called, sorted by their functions. `reset`: they begin anew.
std::vector<RegionCount> ReadRegionCounts(bool reset);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_COUNTS_H_
