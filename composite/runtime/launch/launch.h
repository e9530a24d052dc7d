// Runs the tasks of one parallel loop on the threads of a pool. Depends on neither TensorFlow nor
// TVM.
//
// Threads claim tasks one at a time, and the caller runs every task that no worker claims. A launch
// returns when all tasks have run. It waits only for workers that are running a task, not for those
// that were woken and have not started. So a launch on a busy or sleeping pool takes at most as
// long as the loop on one thread, and two launches on one pool cannot wait for each other.
#ifndef COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_
#define COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_

#include "composite/runtime/launch/pool.h"

namespace composite {

// One parallel loop. Task i of n is called once for each i < n, on any thread.
class Loop {
 public:
  virtual ~Loop() = default;
  virtual void Run(int task, int tasks) = 0;
  // Identifies loops that do the same work: launches record the duration of a loop by it.
  virtual const void* code() const = 0;
};

// Tasks are independent of each other. With `tasks` = 0 the launch chooses their number. All tasks
// run on the calling thread if `pool` is null, or if that thread is running a task of another
// launch. Returns the number of tasks.
int Launch(Pool* pool, int tasks, Loop& loop);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_
