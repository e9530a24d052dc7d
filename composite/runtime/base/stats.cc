#include "composite/runtime/base/stats.h"

namespace composite {

Stats& GlobalStats() {
  static Stats* stats = new Stats;  // never destroyed: threads may still count while exiting
  return *stats;
}

std::vector<std::pair<const char*, Counter*>> AllCounters() {
  Stats& s = GlobalStats();
  return {{"expansions", &s.expansions},
          {"instantiations", &s.instantiations},
          {"optimized", &s.optimized},
          {"expansion_runs", &s.expansion_runs},
          {"gpu_expansion_runs", &s.gpu_expansion_runs},
          {"kernel_launches", &s.kernel_launches},
          {"gpu_kernel_launches", &s.gpu_kernel_launches},
          {"xla_kernel_launches", &s.xla_kernel_launches},
          {"kernel_errors", &s.kernel_errors},
          {"parallel_launches", &s.parallel_launches},
          {"team_launches", &s.team_launches},
          {"short_teams", &s.short_teams},
          {"requests", &s.requests},
          {"answered", &s.answered},
          {"compiles", &s.compiles},
          {"installed", &s.installed},
          {"rejected", &s.rejected},
          {"evicted", &s.evicted},
          {"evicted_classes", &s.evicted_classes},
          {"replaced", &s.replaced},
          {"regions", &s.regions},
          {"invalid_graphs", &s.invalid_graphs},
          {"xla_nodes", &s.xla_nodes},
          {"xla_kernel_nodes", &s.xla_kernel_nodes},
          {"xla_kernels", &s.xla_kernels},
          {"in_place_updates", &s.in_place_updates},
          {"copies", &s.copies},
          {"packed_constants", &s.packed_constants},
          {"packed_bytes", &s.packed_bytes}};
}

}  // namespace composite
