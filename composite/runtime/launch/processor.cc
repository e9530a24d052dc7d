#include "composite/runtime/launch/processor.h"

#include <sched.h>

namespace composite {

int CurrentProcessor() { return sched_getcpu(); }

void MoveOff(int processor) {
  if (processor < 0 || CurrentProcessor() != processor) return;
  cpu_set_t allowed;  // a machine with more processors than it has room for is left as it is
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof allowed, &allowed);  // what was allowed a moment ago
}

}  // namespace composite
