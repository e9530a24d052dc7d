#include "composite/runtime/launch/launch.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "composite/runtime/launch/launch_history.h"
#include "composite/runtime/launch/launch_state.h"

namespace composite {
namespace {

// More tasks than threads, so that a worker that comes late still finds a part worth taking, and
// the caller never waits for more than one such part.
constexpr int kTasksPerThread = 4;

class LaunchState : public Shared<LaunchState> {
 public:
  LaunchState(Pool* pool, int tasks, int helpers, Loop& loop)
      : pool_(pool), tasks_(tasks), helpers_(helpers), loop_(loop), unfinished_(tasks) {}

  void RunHere() {
    LaunchHistory& history = LaunchHistory::Global();
    const int64_t begin = LaunchHistory::Now();
    const int64_t stream = history.Stream(begin);
    int64_t work = history.Work(loop_.code());
    if (work == 0) {
      RunTask(Claim());
      work = (LaunchHistory::Now() - begin) * tasks_;
    }
    if (history.Awake(begin) || LaunchHistory::WorthWaking(stream + work)) Wake(0);
    for (int task = Claim(); task < tasks_; task = Claim()) RunTask(task);
    unfinished_.Wait();
    history.LaunchEnded(loop_.code(), work_.load(std::memory_order_relaxed),
                        stream + LaunchHistory::Now() - begin);
  }

 private:
  int Claim() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // Each worker that finds work wakes the next, so that a launch costs its caller one wake-up
  // however many threads there are.
  void Wake(int helper) {
    if (helper >= helpers_) return;
    Ref();
    pool_->Schedule([this, helper] { Help(helper); });
  }

  void Help(int helper) {
    // A claimed task keeps the launch from returning; only then may pool_ and loop_ be touched.
    int task = Claim();
    if (task < tasks_) {
      Wake(2 * helper + 1);
      Wake(2 * helper + 2);
    }
    for (; task < tasks_; task = Claim()) RunTask(task);
    LaunchHistory::Global().SawWorker();
    Unref();
  }

  void RunTask(int task) {
    const int64_t begin = LaunchHistory::Now();
    {
      TaskScope scope;
      loop_.Run(task, tasks_);
    }
    work_.fetch_add(LaunchHistory::Now() - begin, std::memory_order_relaxed);
    unfinished_.Done();
  }

  Pool* const pool_;
  const int tasks_;
  const int helpers_;
  Loop& loop_;
  std::atomic<int> next_{0};
  std::atomic<int64_t> work_{0};  // nanoseconds
  Countdown unfinished_;
};

}  // namespace

int Launch(Pool* pool, int tasks, Loop& loop) {
  const bool alone = RunsAlone(pool);
  if (tasks <= 0) tasks = alone ? 1 : pool->size() * kTasksPerThread;
  if (alone || tasks == 1) {
    TaskScope scope;
    for (int task = 0; task < tasks; ++task) loop.Run(task, tasks);
    return tasks;
  }
  auto* state = new LaunchState(pool, tasks, std::min(pool->size(), tasks) - 1, loop);
  state->RunHere();
  state->Unref();
  return tasks;
}

}  // namespace composite
