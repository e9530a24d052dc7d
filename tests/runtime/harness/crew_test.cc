// composite/runtime/launch/crew.h and processor.h. Also built with -fsanitize=thread.
#include "composite/runtime/launch/crew.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "composite/runtime/launch/launch.h"
#include "composite/runtime/launch/launch_state.h"
#include "composite/runtime/launch/processor.h"
#include "tests/runtime/harness/check.h"
#include "tests/runtime/harness/pools.h"

namespace {

using composite::Crew;
using composite::Pool;

void Sleep(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

// Counts what its threads are woken for.
class CountingPool : public Pool {
 public:
  explicit CountingPool(int threads) : pool_(threads) {}
  int size() const override { return pool_.size(); }
  void Schedule(std::function<void()> work) override {
    ++scheduled;
    pool_.Schedule(std::move(work));
  }
  std::atomic<int> scheduled{0};

 private:
  ThreadPool pool_;
};

// Runs a closure through the crew, and waits for it.
std::thread::id RunOne(Pool* pool) {
  std::atomic<bool> done{false};
  std::thread::id ran;
  Crew::Global().Schedule(pool, [&] {
    ran = std::this_thread::get_id();
    Crew::Return();
    done.store(true, std::memory_order_release);
  });
  while (!done.load(std::memory_order_acquire)) std::this_thread::yield();
  return ran;
}

// The scheduler may have taken the worker away for longer than it stays: so most of many.
void AWorkerThatStaysTakesTheNext() {
  CountingPool pool(3);
  Sleep(1000);  // who stayed before is gone
  EXPECT(!Crew::Global().IsWaiting());
  int same = 0;
  std::thread::id last;
  constexpr int kRuns = 200;
  for (int i = 0; i < kRuns; ++i) {
    const std::thread::id ran = RunOne(&pool);
    EXPECT(ran != std::this_thread::get_id());
    same += ran == last ? 1 : 0;
    last = ran;
  }
  EXPECT(same > kRuns / 2 && pool.scheduled < kRuns / 2);
}

void ItLeavesAfterAMoment() {
  CountingPool pool(2);
  Sleep(1000);
  RunOne(&pool);
  EXPECT(pool.scheduled == 1);
  bool waits = true;
  for (int i = 0; i < 1000 && (waits = Crew::Global().IsWaiting()); ++i) Sleep(100);
  EXPECT(!waits);
  RunOne(&pool);
  EXPECT(pool.scheduled == 2);
}

// The other half is for whatever else the pool is given.
void HalfOfAPoolStays() {
  CountingPool pool(2);
  Sleep(1000);
  std::atomic<int> running{0}, done{0};
  for (int i = 0; i < 2; ++i) {
    Crew::Global().Schedule(&pool, [&] {
      ++running;
      while (running.load() < 2) std::this_thread::yield();  // on two threads
      Crew::Return();
      ++done;
    });
  }
  while (done.load() < 2) std::this_thread::yield();
  EXPECT(pool.scheduled == 2);
  std::atomic<bool> first{false}, go{false}, second{false};
  Crew::Global().Schedule(&pool, [&] {
    first = true;
    while (!go.load()) std::this_thread::yield();
  });
  while (!first.load()) std::this_thread::yield();
  EXPECT(!Crew::Global().IsWaiting());  // the one that stays is busy
  Crew::Global().Schedule(&pool, [&] { second = true; });
  while (!second.load()) std::this_thread::yield();
  go = true;
}

void WhoRunsInsideOfScheduleDoesNotStay() {
  Sleep(1000);
  InlinePool pool;
  EXPECT(RunOne(&pool) == std::this_thread::get_id());
  EXPECT(!Crew::Global().IsWaiting());
}

// Workers of one pool take the work of another: each closure runs once, whoever schedules it.
void ManyCallersOnTwoPools() {
  CountingPool one(3), other(2);
  constexpr int kCallers = 4, kRuns = 500;
  std::atomic<int> ran{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, pool = c % 2 == 0 ? &one : &other] {
      std::atomic<int> own{0};
      for (int i = 0; i < kRuns; ++i) {
        Crew::Global().Schedule(pool, [&] {
          ++ran;
          Crew::Return();
          ++own;
        });
        while (i % 3 == 0 && own.load() <= i) std::this_thread::yield();
      }
      while (own.load() < kRuns) std::this_thread::yield();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT(ran == kCallers * kRuns);
}

int Allowed() {
  cpu_set_t allowed;
  EXPECT(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  return CPU_COUNT(&allowed);
}

void AThreadMovesOffAProcessor() {
  const int allowed = Allowed();
  const int here = composite::CurrentProcessor();
  composite::MoveOff(here);
  EXPECT(Allowed() == allowed);
  if (allowed == 1) EXPECT(composite::CurrentProcessor() == here);
  composite::MoveOff(-1);
  EXPECT(Allowed() == allowed);
}

void Confine(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
}

// A caller that comes to where its worker waits, and does not sleep.
void AWorkerOnItsCallersProcessorIsMoved() {
  if (Allowed() == 1) return;
  CountingPool pool(2);
  std::thread([&] {
    int soon = 0;
    constexpr int kRuns = 50;
    for (int i = 0; i < kRuns; ++i) {
      std::atomic<int> worked_on{-1};
      Crew::Global().Schedule(&pool, [&] {
        worked_on = composite::CurrentProcessor();
        Crew::Return();
      });
      while (worked_on.load() < 0) std::this_thread::yield();
      Confine(worked_on);
      std::atomic<bool> done{false};
      const auto begin = std::chrono::steady_clock::now();
      const int before = pool.scheduled;
      Crew::Global().Schedule(&pool, [&] {
        Crew::Return();
        done = true;
      });
      while (!done.load()) composite::Pause(0);
      const bool stayed = pool.scheduled == before;
      soon += !stayed || std::chrono::steady_clock::now() - begin < std::chrono::microseconds(500);
    }
    EXPECT(soon > kRuns * 3 / 4);
  }).join();
}

void ACallerIsItsOwnThreadAlone() {
  const composite::Caller caller;
  EXPECT(caller.IsHere());
  caller.LeaveProcessor();
  std::thread([&] {
    const int allowed = Allowed();
    EXPECT(!caller.IsHere());
    caller.LeaveProcessor();
    EXPECT(Allowed() == allowed);
  }).join();
}

void WhoMayRunOnOneOnlyStays() {
  std::thread([] {
    const int here = composite::CurrentProcessor();
    Confine(here);
    composite::MoveOff(here);
    EXPECT(composite::CurrentProcessor() == here && Allowed() == 1);
  }).join();
}

}  // namespace

int main(int argc, char** argv) {
  return RunTests(
      {{"a_worker_that_stays_takes_the_next", AWorkerThatStaysTakesTheNext},
       {"it_leaves_after_a_moment", ItLeavesAfterAMoment},
       {"half_of_a_pool_stays", HalfOfAPoolStays},
       {"who_runs_inside_of_schedule_does_not_stay", WhoRunsInsideOfScheduleDoesNotStay},
       {"many_callers_on_two_pools", ManyCallersOnTwoPools},
       {"a_thread_moves_off_a_processor", AThreadMovesOffAProcessor},
       {"a_worker_on_its_callers_processor_is_moved", AWorkerOnItsCallersProcessorIsMoved},
       {"a_caller_is_its_own_thread_alone", ACallerIsItsOwnThreadAlone},
       {"who_may_run_on_one_only_stays", WhoMayRunOnOneOnlyStays}},
      argc, argv);
}
