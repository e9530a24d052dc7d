// Launches of loops that meet at barriers, so that all tasks must run at the same time. The team is
// the caller and those workers that arrive within a short time; it may be the caller alone.
#ifndef COMPOSITE_RUNTIME_LAUNCH_LAUNCH_TEAM_H_
#define COMPOSITE_RUNTIME_LAUNCH_LAUNCH_TEAM_H_

#include "composite/runtime/launch/pool.h"

namespace composite {

class Barrier {
 public:
  virtual ~Barrier() = default;
  // True when every task of the loop has called it as often. False when one never will: what it had
  // to write is missing, so the caller must leave the loop too.
  virtual bool Wait() = 0;
  // For a task that leaves early: every Wait that has not returned then gives up.
  virtual void Break() = 0;
};

class TeamLoop {
 public:
  virtual ~TeamLoop() = default;
  virtual void Run(int task, int tasks, Barrier& barrier) = 0;
  // As Loop::code.
  virtual const void* code() const = 0;
};

// The number of tasks used.
int LaunchTeam(Pool* pool, TeamLoop& loop);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_LAUNCH_TEAM_H_
