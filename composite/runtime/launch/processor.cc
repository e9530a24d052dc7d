#include "composite/runtime/launch/processor.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace composite {

int CurrentProcessor() { return sched_getcpu(); }

int CurrentThread() {
  static thread_local const int thread = static_cast<int>(syscall(SYS_gettid));
  return thread;
}

int64_t Preemptions() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

void MoveOff(int processor) {
  if (processor >= 0 && CurrentProcessor() == processor) MoveOff(processor, 0);
}

void MoveOff(int processor, int thread) {
  cpu_set_t allowed;  // too small on some machines: then the call below fails
  if (sched_getaffinity(thread, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  cpu_set_t others = allowed;
  CPU_CLR(processor, &others);
  if (sched_setaffinity(thread, sizeof others, &others) != 0) return;
  sched_setaffinity(thread, sizeof allowed, &allowed);  // restores the affinity
}

}  // namespace composite
