#include "composite/runtime/launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "composite/runtime/launch_state.h"

namespace composite {
namespace {

using Clock = std::chrono::steady_clock;

// More tasks than threads, so that a worker that comes late still finds a part worth taking, and
// the caller never waits for more than one such part.
constexpr int kTasksPerThread = 4;
// To wake a sleeping worker costs its caller 5-15 us and brings it in after 20-50 us: not worth it
// for less work than this.
constexpr std::chrono::microseconds kWorthWaking(100);
// A worker that was seen this short a time ago is still spinning (TensorFlow's pools spin 25 us and
// more before they sleep), and is woken for nothing.
constexpr std::chrono::microseconds kAwake(15);
// Launches with no longer gap between them are one stream of work.
constexpr std::chrono::microseconds kStreamGap(50);

// What recent launches tell of the workers. A guess for the whole process, by which a launch only
// decides how early it wakes the first of them.
class Wakefulness {
 public:
  static int64_t Now() { return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

  void SawWorker() { worker_seen_.store(Now(), std::memory_order_relaxed); }

  bool Awake(int64_t now) const {
    return now - worker_seen_.load(std::memory_order_relaxed) < kAwake / kNs;
  }

  // The time taken by the launches that ended a moment before `now`, without a break between them:
  // a long stack of small loops is worth a wake-up although none of them is.
  int64_t Stream(int64_t now) const {
    const bool goes_on = now - last_end_.load(std::memory_order_relaxed) < kStreamGap / kNs;
    return goes_on ? stream_.load(std::memory_order_relaxed) : 0;
  }

  void LaunchEnded(int64_t stream) {
    stream_.store(stream, std::memory_order_relaxed);
    last_end_.store(Now(), std::memory_order_relaxed);
  }

  static bool WorthWaking(int64_t work) { return work > kWorthWaking / kNs; }

 private:
  static constexpr std::chrono::nanoseconds kNs{1};

  std::atomic<int64_t> worker_seen_{0};
  std::atomic<int64_t> last_end_{0};
  std::atomic<int64_t> stream_{0};
};

Wakefulness workers;

class LaunchState : public Shared<LaunchState> {
 public:
  LaunchState(Pool* pool, int tasks, int helpers, Loop& loop)
      : pool_(pool), tasks_(tasks), helpers_(helpers), loop_(loop), unfinished_(tasks) {}

  void RunHere() {
    const int64_t begin = Wakefulness::Now();
    const int64_t stream = workers.Stream(begin);
    if (workers.Awake(begin)) {
      Wake(0);
    } else {
      // Nobody is known to be awake: what the first task takes tells whether to wake someone.
      RunTask(Claim());
      const int64_t whole = (Wakefulness::Now() - begin) * tasks_;
      if (Wakefulness::WorthWaking(stream + whole)) Wake(0);
    }
    for (int task = Claim(); task < tasks_; task = Claim()) RunTask(task);
    unfinished_.Wait();
    workers.LaunchEnded(stream + Wakefulness::Now() - begin);
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
    workers.SawWorker();
    Unref();
  }

  void RunTask(int task) {
    {
      TaskScope scope;
      loop_.Run(task, tasks_);
    }
    unfinished_.Done();
  }

  Pool* const pool_;
  const int tasks_;
  const int helpers_;
  Loop& loop_;
  std::atomic<int> next_{0};
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
