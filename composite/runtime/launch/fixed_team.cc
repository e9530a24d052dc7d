#include "composite/runtime/launch/fixed_team.h"

#include <exception>

#include "composite/runtime/launch/launch_state.h"

namespace composite {

class FixedTeam::Meeting : public Barrier {
 public:
  explicit Meeting(int size) : present_(size) {}

  bool Wait() override {
    std::unique_lock<std::mutex> lock(mu_);
    if (broken_) return false;
    if (++waiting_ == present_) {
      if (left_) {
        Abandon();
        return false;
      }
      waiting_ = 0;
      ++round_;
      released_.notify_all();
      return true;
    }
    const int64_t round = round_;
    released_.wait(lock, [&] { return broken_ || round_ != round; });
    return round_ != round;
  }

  void Break() override {
    std::lock_guard<std::mutex> lock(mu_);
    broken_ = true;
    released_.notify_all();
  }

  // Called by a member that has ended.
  void Leave() {
    std::lock_guard<std::mutex> lock(mu_);
    left_ = true;
    --present_;
    if (!broken_ && waiting_ > 0 && waiting_ == present_) Abandon();
  }

  bool abandoned() {
    std::lock_guard<std::mutex> lock(mu_);
    return abandoned_;
  }

 private:
  // All remaining members wait for one that has ended.
  void Abandon() {
    abandoned_ = true;
    broken_ = true;
    released_.notify_all();
  }

  std::mutex mu_;
  std::condition_variable released_;
  int present_;  // members that have not ended
  int waiting_ = 0;
  int64_t round_ = 0;
  bool left_ = false;
  bool broken_ = false;
  bool abandoned_ = false;
};

FixedTeam::~FixedTeam() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool FixedTeam::Run(TeamLoop& loop) {
  if (inside_task) {  // as every launch inside a task does
    Meeting alone(1);
    loop.Run(0, 1, alone);
    return true;
  }
  if (size_ == 0) Start();
  Meeting meeting(size_);
  {
    std::lock_guard<std::mutex> lock(mu_);
    loop_ = &loop;
    meeting_ = &meeting;
    running_ = size_;
    ++round_;
  }
  changed_.notify_all();
  RunMember(0, loop, meeting);
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return running_ == 0; });
  return !meeting.abandoned();
}

void FixedTeam::Start() {
  size_ = 1;
  try {
    for (; size_ < wanted_; ++size_) {
      threads_.emplace_back([this, task = size_] { Work(task); });
    }
  } catch (const std::exception&) {
    // There are no more threads, or no memory for them: the team consists of those that started.
  }
}

void FixedTeam::Work(int task) {
  for (int64_t seen = 0;;) {
    TeamLoop* loop = nullptr;
    Meeting* meeting = nullptr;
    {
      std::unique_lock<std::mutex> lock(mu_);
      changed_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
      loop = loop_;
      meeting = meeting_;
    }
    RunMember(task, *loop, *meeting);
  }
}

void FixedTeam::RunMember(int task, TeamLoop& loop, Meeting& meeting) {
  {
    TaskScope scope;
    loop.Run(task, size_, meeting);
  }
  meeting.Leave();
  std::lock_guard<std::mutex> lock(mu_);
  if (--running_ == 0) changed_.notify_all();
}

}  // namespace composite
