// Runs the tasks of one parallel loop on somebody else's threads. Knows neither TensorFlow nor TVM:
// a pool is whatever can schedule a closure.
//
// The rule is that the caller runs what no worker has taken. Tasks are claimed one by one; a launch
// returns when all have run, and waits only for workers that are inside a task, never for one that
// was woken and has not come. So a busy or sleeping pool costs the time of the loop on one thread,
// and two launches on one pool cannot wait for each other.
#ifndef COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_
#define COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_

#include <functional>

namespace composite {

class Pool {
 public:
  virtual ~Pool() = default;
  // Threads that may run tasks at once, the caller's own counted as one of them.
  virtual int size() const = 0;
  // Runs `work` at some time on some thread, or never if the pool is shut down, or before this call
  // returns. Must not wait for anything.
  virtual void Schedule(std::function<void()> work) = 0;
};

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

// For loops that meet at barriers, so that all tasks must run at the same time. The team is the
// caller and those workers that arrive within a short time; it may be the caller alone.
class Barrier {
 public:
  virtual ~Barrier() = default;
  // Returns when every task of the loop has called it as often, or after Break.
  virtual void Wait() = 0;
  // For a task that leaves early: the others would wait for it for ever.
  virtual void Break() = 0;
};

class TeamLoop {
 public:
  virtual ~TeamLoop() = default;
  virtual void Run(int task, int tasks, Barrier& barrier) = 0;
  // As Loop::code.
  virtual const void* code() const = 0;
};

int LaunchTeam(Pool* pool, TeamLoop& loop);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_LAUNCH_H_
