// composite/runtime/launch/launch.h on pools of every temper. Also built with -fsanitize=thread.
#include "composite/runtime/launch/launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "composite/runtime/launch/launch_team.h"
#include "composite/runtime/launch/processor_share.h"
#include "tests/runtime/harness/check.h"
#include "tests/runtime/harness/pools.h"

namespace {

using composite::Barrier;
using composite::Launch;
using composite::LaunchTeam;
using composite::Pool;
using composite::ProcessorShare;

// Counts how often each task ran; no more than 64 tasks.
class CountingLoop : public composite::Loop {
 public:
  void Run(int task, int tasks) override {
    ran_[task].fetch_add(1);
    tasks_ = tasks;
    if (also) also();
  }
  void ExpectEachOnce(int tasks) const {
    EXPECT(tasks_ == tasks);
    for (int i = 0; i < 64; ++i) EXPECT(ran_[i].load() == (i < tasks ? 1 : 0));
  }
  // No loop before had this code, though it may have lain at this place.
  const void* code() const override { return reinterpret_cast<const void*>(number_); }
  std::function<void()> also;

 private:
  static inline std::atomic<uintptr_t> loops_{0};
  const uintptr_t number_ = ++loops_;
  std::atomic<int> ran_[64] = {};
  std::atomic<int> tasks_{0};
};

void EveryTaskRunsOnce() {
  for (int threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    for (int tasks : {0, 1, 2, 3, 17, 64}) {
      CountingLoop loop;
      const int used = Launch(&pool, tasks, loop);
      EXPECT(tasks == 0 || used == tasks);
      loop.ExpectEachOnce(used);
    }
  }
}

void NoPoolRunsHere() {
  CountingLoop loop;
  EXPECT(Launch(nullptr, 0, loop) == 1);
  loop.ExpectEachOnce(1);
}

void SleepingWorkersAreNotWaitedFor() {
  ProcessorShare::Global().Forget();
  SleepingPool pool;
  {
    auto loop = std::make_unique<CountingLoop>();
    // Long enough to be worth a wake-up.
    loop->also = [] { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
    const int used = Launch(&pool, 0, *loop);
    loop->ExpectEachOnce(used);
  }
  // The loop is gone: a worker that comes now must find nothing to do. One comes only if the tasks
  // were long enough to be worth waking it.
  EXPECT(pool.RunLate() == 1);
}

void AKnownLongLoopWakesAtOnce() {
  ProcessorShare::Global().Forget();
  SleepingPool pool;
  CountingLoop loop;
  std::atomic<int> scheduled_before{-1};
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // no worker was seen just now
  loop.also = [&] {
    int none = -1;
    scheduled_before.compare_exchange_strong(none, pool.scheduled());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  };
  Launch(&pool, 0, loop);
  EXPECT(scheduled_before == 0);  // the first task of the first launch was measured
  scheduled_before = -1;
  Launch(&pool, 0, loop);
  EXPECT(scheduled_before > 0);
  pool.RunLate();
}

void AShortLoopWakesNobody() {
  int woken = 0;
  constexpr int kAttempts = 20;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    SleepingPool pool;
    CountingLoop loop;
    // Lest it count as one stream of work with the loops before.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < 3; ++i) Launch(&pool, 0, loop);
    if (pool.RunLate() > 0) ++woken;
  }
  EXPECT(woken < kAttempts / 2);  // a short loop may be interrupted, most are not
}

void FullQueueRunsInline() {
  InlinePool pool;
  CountingLoop loop;
  const int used = Launch(&pool, 0, loop);
  loop.ExpectEachOnce(used);
}

void NestedLaunchIsSerial() {
  ThreadPool pool(3);
  std::atomic<int> inner_tasks{0};
  CountingLoop loop;
  loop.also = [&] {
    const auto self = std::this_thread::get_id();
    CountingLoop inner;
    inner.also = [self] { EXPECT(std::this_thread::get_id() == self); };
    EXPECT(Launch(&pool, 0, inner) == 1);
    EXPECT(Launch(&pool, 5, *std::make_unique<CountingLoop>()) == 5);
    inner_tasks.fetch_add(1);
  };
  EXPECT(Launch(&pool, 6, loop) == 6);
  EXPECT(inner_tasks.load() == 6);
}

void ManyCallersShareOnePool() {
  ThreadPool pool(2);
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&pool] {
      for (int i = 0; i < 300; ++i) {
        CountingLoop loop;
        const int used = Launch(&pool, i % 9, loop);
        loop.ExpectEachOnce(used);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Each step reads what its neighbour wrote in the step before: wrong without barriers.
class SteppingLoop : public composite::TeamLoop {
 public:
  explicit SteppingLoop(const char* code) : code_(code) {}
  const void* code() const override { return code_; }

  void Run(int task, int tasks, Barrier& barrier) override {
    for (int step = 0; step < kSteps; ++step) {
      const int seen = values[(task + 1) % tasks].load(std::memory_order_relaxed);
      good = good && (seen == step);
      barrier.Wait();
      values[task].store(step + 1, std::memory_order_relaxed);
      barrier.Wait();
    }
    largest = tasks;
  }
  static constexpr int kSteps = 50;
  std::atomic<int> values[64] = {};
  std::atomic<bool> good{true};
  std::atomic<int> largest{0};

 private:
  const char* const code_;
};

void TeamMeetsAtBarriers() {
  ThreadPool pool(3, /*spin=*/true);
  int largest = 0;
  for (int i = 0; i < 100; ++i) {
    SteppingLoop loop("meets");
    const int size = LaunchTeam(&pool, loop);
    EXPECT(loop.good.load() && loop.largest.load() == size);
    largest = std::max(largest, size);
  }
  std::printf("   largest team: %d of 3\n", largest);
}

void TeamOfOne() {
  SleepingPool sleeping;
  InlinePool inline_pool;
  for (Pool* pool : std::vector<Pool*>{&sleeping, &inline_pool, nullptr}) {
    SteppingLoop loop(pool == &sleeping ? "sleeping" : "inline");
    EXPECT(LaunchTeam(pool, loop) == 1);
    EXPECT(loop.good.load());
  }
  EXPECT(sleeping.RunLate() == 3);
}

void ShortLoopsWakeNobody() {
  SleepingPool sleeping;
  int woken = 0;
  for (int i = 0; i < 20; ++i) {
    SteppingLoop loop("short");
    EXPECT(LaunchTeam(&sleeping, loop) == 1);
    EXPECT(loop.good.load());
    woken = sleeping.RunLate();
    if (i == 0) EXPECT(woken == 3);  // it is not known how long the first takes
    if (i > 0 && woken == 0) break;  // a moment in which the machine did something else is long
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // else it is one long stream
  }
  EXPECT(woken == 0);
}

void TwoTeamsDoNotDeadlock() {
  ThreadPool pool(2);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&pool] {
      for (int i = 0; i < 50; ++i) {
        SteppingLoop loop("two teams");
        LaunchTeam(&pool, loop);
        EXPECT(loop.good.load());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

void BrokenBarrierFreesTheOthers() {
  class LeavingLoop : public composite::TeamLoop {
   public:
    void Run(int task, int, Barrier& barrier) override {
      if (task == 0) return barrier.Break();
      for (int i = 0; i < 3; ++i) barrier.Wait();
    }
    const void* code() const override { return "leaving"; }
  };
  ThreadPool pool(3, /*spin=*/true);
  for (int i = 0; i < 100; ++i) {
    LeavingLoop loop;
    LaunchTeam(&pool, loop);
  }
}

// Busy for about `microseconds` in all, shared by the tasks.
class BusyLoop : public composite::Loop {
 public:
  explicit BusyLoop(int rounds) : rounds_(rounds) {}
  void Run(int task, int tasks) override {
    const int end = rounds_ * (task + 1) / tasks;
    unsigned sum = 0;
    for (int i = rounds_ * task / tasks; i < end; ++i) {
      for (int j = 0; j < 100; ++j) sum = sum * 1664525u + 1013904223u;
    }
    sink_.fetch_add(sum, std::memory_order_relaxed);
  }
  const void* code() const override { return this; }

 private:
  int rounds_;
  std::atomic<unsigned> sink_{0};
};

void ALossLeavesFewerThreadsForAWhile() {
  ProcessorShare share;
  const int64_t ms = 1'000'000;
  EXPECT(share.Threads(8, 0) == 8);
  // Two of eight threads lost their processor, and the launch took ten times as long as usual.
  EXPECT(share.Ended(8, 2, ms, ms / 10, 300 * ms));
  EXPECT(share.Threads(8, 300 * ms) == 6);
  EXPECT(share.Threads(4, 300 * ms) == 4);
  // After a pause one launch tries all of them, and the next only if that went well.
  EXPECT(share.Threads(8, 301 * ms) == 8);
  EXPECT(share.Threads(8, 301 * ms) == 6);
  EXPECT(!share.Ended(8, 0, ms / 10, ms / 10, 302 * ms));
  EXPECT(share.Threads(8, 302 * ms) == 8);
}

void LossesThatFollowEachOtherLeaveThemForLonger() {
  ProcessorShare share;
  const int64_t ms = 1'000'000;
  int64_t now = 300 * ms;
  for (const int64_t pause : {1, 4, 16, 64, 100, 100}) {
    EXPECT(share.Ended(2, 1, ms, ms / 10, now));
    EXPECT(share.Threads(2, now + pause * ms - 1) == 1);
    now += pause * ms;
    EXPECT(share.Threads(2, now) == 2);
  }
  now += 300 * ms;
  EXPECT(share.Ended(2, 1, ms, ms / 10, now));
  EXPECT(share.Threads(2, now + ms) == 2);
}

void NoLossLeavesAllThreads() {
  ProcessorShare share;
  const int64_t ms = 1'000'000;
  EXPECT(!share.Ended(8, 0, 10 * ms, ms, 10 * ms));      // long, but all kept their processor
  EXPECT(!share.Ended(8, 1, 2 * ms, ms, 20 * ms));       // little longer than usual
  EXPECT(!share.Ended(8, 1, ms / 2, ms / 10, 25 * ms));  // for less than a time slice
  EXPECT(!share.Ended(8, 1, 2 * ms, 0, 30 * ms));        // it is not known what is usual
  EXPECT(share.Threads(8, 30 * ms) == 8);
}

void OneThreadIsAlwaysLeft() {
  ProcessorShare share;
  const int64_t ms = 1'000'000;
  EXPECT(share.Ended(2, 2, 900 * ms, ms, 1000 * ms));
  EXPECT(share.Threads(2, 1000 * ms) == 1);
  EXPECT(share.Threads(2, 1099 * ms) == 1);
  EXPECT(share.Threads(2, 1100 * ms) == 2);  // a pause has an end, however long the loss was
}

double Microseconds(const std::function<void()>& work, int repeats, int gap_us) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    if (gap_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(gap_us));
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// After an idle gap the workers sleep. Medians, and three attempts, since the machine is shared.
bool LaunchAfterGapIsCheap(ThreadPool* pool, int rounds) {
  BusyLoop loop(rounds);
  const double serial = Microseconds([&] { Launch(nullptr, 0, loop); }, 101, 2000);
  const double launch = Microseconds([&] { Launch(pool, 0, loop); }, 101, 2000);
  const double hot = Microseconds([&] { Launch(pool, 0, loop); }, 101, 0);
  std::printf("   one thread %.1f us, launch after a gap %.1f us, hot %.1f us\n", serial, launch,
              hot);
  // What is left over is the one wake-up that a launch pays for.
  return launch < 1.25 * serial + 25;
}

void IdleGapCostsNoMoreThanOneThread() {
  if (std::getenv("COMPOSITE_SKIP_TIMING") != nullptr) return;
  ThreadPool pool(2);
  for (int rounds : {100, 400, 1000, 4000}) {
    bool cheap = false;
    for (int attempt = 0; attempt < 3 && !cheap; ++attempt) {
      cheap = LaunchAfterGapIsCheap(&pool, rounds);
    }
    EXPECT(cheap);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunTests(
      {// First, while no other loop has taken the places in which times are kept.
       {"team_of_one", TeamOfOne},
       {"short_loops_wake_nobody", ShortLoopsWakeNobody},
       {"every_task_runs_once", EveryTaskRunsOnce},
       {"no_pool_runs_here", NoPoolRunsHere},
       {"sleeping_workers_are_not_waited_for", SleepingWorkersAreNotWaitedFor},
       {"a_known_long_loop_wakes_at_once", AKnownLongLoopWakesAtOnce},
       {"a_short_loop_wakes_nobody", AShortLoopWakesNobody},
       {"full_queue_runs_inline", FullQueueRunsInline},
       {"nested_launch_is_serial", NestedLaunchIsSerial},
       {"many_callers_share_one_pool", ManyCallersShareOnePool},
       {"team_meets_at_barriers", TeamMeetsAtBarriers},
       {"two_teams_do_not_deadlock", TwoTeamsDoNotDeadlock},
       {"broken_barrier_frees_the_others", BrokenBarrierFreesTheOthers},
       {"a_loss_leaves_fewer_threads_for_a_while", ALossLeavesFewerThreadsForAWhile},
       {"losses_that_follow_each_other_leave_them_for_longer",
        LossesThatFollowEachOtherLeaveThemForLonger},
       {"no_loss_leaves_all_threads", NoLossLeavesAllThreads},
       {"one_thread_is_always_left", OneThreadIsAlwaysLeft},
       {"idle_gap", IdleGapCostsNoMoreThanOneThread}},
      argc, argv);
}
