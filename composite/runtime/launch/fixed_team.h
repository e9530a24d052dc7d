// A team that owns a fixed number of threads and runs each loop on all of them at once.
//
// It checks kernels before they serve: the division of loops and the barriers between tasks must be
// exercised even on a busy machine. Kernels that serve use LaunchTeam, whose members are the
// workers that arrive in time.
#ifndef COMPOSITE_RUNTIME_LAUNCH_FIXED_TEAM_H_
#define COMPOSITE_RUNTIME_LAUNCH_FIXED_TEAM_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "composite/runtime/launch/launch_team.h"

namespace composite {

// Not thread-safe: one thread calls Run.
class FixedTeam {
 public:
  // `size` counts the caller's thread. The other threads start with the first loop; if the system
  // refuses to start some, the team is smaller.
  explicit FixedTeam(int size) : wanted_(size) {}
  ~FixedTeam();
  FixedTeam(const FixedTeam&) = delete;
  FixedTeam& operator=(const FixedTeam&) = delete;

  // Runs task i of the loop on thread i, all at once. Returns false if the loop would have hung: a
  // task ended while others waited for it at a barrier. The barrier then releases them.
  bool Run(TeamLoop& loop);

  // The number of its threads; 0 before the first loop.
  int size() const { return size_; }

 private:
  // Waiting threads sleep, since there may be fewer cores than threads.
  class Meeting;

  void Start();
  void Work(int task);
  void RunMember(int task, TeamLoop& loop, Meeting& meeting);

  const int wanted_;
  int size_ = 0;
  std::vector<std::thread> threads_;

  std::mutex mu_;
  std::condition_variable changed_;
  // Under mu_:
  int64_t round_ = 0;  // how many loops the threads were given
  bool stopping_ = false;
  TeamLoop* loop_ = nullptr;
  Meeting* meeting_ = nullptr;
  int running_ = 0;  // members of the current loop that have not ended
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_FIXED_TEAM_H_
