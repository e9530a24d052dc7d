// Runs the tasks of one parallel loop on somebody else's threads. Knows neither TensorFlow nor TVM.
//
// The rule is that the caller runs what no worker has taken. Tasks are claimed one by one; a launch
// returns when all have run, and waits only for workers that are inside a task, never for one that
// was woken and has not come. So a busy or sleeping pool costs the time of the loop on one thread,
// and two launches on one pool cannot wait for each other.
#ifndef COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_
#define COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_

#include "composite/runtime/launch/pool.h"

namespace composite {

// One parallel loop. Task i of n is called once for each i < n, on any thread.
class Loop {
 public:
  virtual ~Loop() = default;
  virtual void Run(int task, int tasks) = 0;
  // The same for loops that do the same work: a launch remembers by it how long they take.
  virtual const void* code() const = 0;
};

// Tasks are independent. `tasks` = 0 lets the launch choose. `pool` may be null: all tasks then run
// here, and so they do inside another launch's task. Returns the number of tasks used.
int Launch(Pool* pool, int tasks, Loop& loop);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_
