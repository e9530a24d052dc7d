// Launches of loops with barriers, whose tasks must all run at the same time. The team consists of
// the caller and the workers that arrive within a short time; it may be the caller alone.
#ifndef COMPOSITE_RUNTIME_LAUNCH_LAUNCH_TEAM_H_
#define COMPOSITE_RUNTIME_LAUNCH_LAUNCH_TEAM_H_

#include "composite/runtime/launch/pool.h"

namespace composite {

class Barrier {
 public:
  virtual ~Barrier() = default;
  // Returns true once every task of the loop has called it equally often. Returns false if a task
  // never will: what that task had to write is missing, so the caller must leave the loop too.
  virtual bool Wait() = 0;
  // Called by a task that leaves early: every pending Wait returns false.
  virtual void Break() = 0;
};

class TeamLoop {
 public:
  virtual ~TeamLoop() = default;
  virtual void Run(int task, int tasks, Barrier& barrier) = 0;
  // See Loop::code.
  virtual const void* code() const = 0;
};

// Returns the number of tasks.
int LaunchTeam(Pool* pool, TeamLoop& loop);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_LAUNCH_TEAM_H_
