// A team of a given number of threads, which are its own: each loop runs on all of them at once.
// For checking a kernel before it serves: how a loop is divided and where its tasks meet has to be
// exercised, however busy the machine is. Not for serving: LaunchTeam takes whoever comes in time.
#ifndef COMPOSITE_RUNTIME_LAUNCH_FIXED_TEAM_H_
#define COMPOSITE_RUNTIME_LAUNCH_FIXED_TEAM_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "composite/runtime/launch/launch_team.h"

namespace composite {

// Used by one thread, the caller of Run.
class FixedTeam {
 public:
  // `size` threads, the caller's counted as one of them. The others start with the first loop;
  // where the system gives no more threads, the team is as large as it gets.
  explicit FixedTeam(int size) : wanted_(size) {}
  ~FixedTeam();
  FixedTeam(const FixedTeam&) = delete;
  FixedTeam& operator=(const FixedTeam&) = delete;

  // Runs task i of the loop on thread i, for all i at once. False when the loop would have hung: a
  // task ended while others waited for it at a barrier, which then let them go.
  bool Run(TeamLoop& loop);

  // Its threads; 0 before the first loop.
  int size() const { return size_; }

 private:
  // Its threads sleep while they wait: there may be fewer cores than threads.
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
  int64_t round_ = 0;  // counts the loops that were handed to the threads
  bool stopping_ = false;
  TeamLoop* loop_ = nullptr;
  Meeting* meeting_ = nullptr;
  int running_ = 0;  // members of the current loop that have not ended
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_FIXED_TEAM_H_
