#include "composite/runtime/launch/launch_team.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "composite/runtime/launch/crew.h"
#include "composite/runtime/launch/launch_history.h"
#include "composite/runtime/launch/launch_state.h"
#include "composite/runtime/launch/processor.h"
#include "composite/runtime/launch/processor_share.h"

namespace composite {
namespace {

// How long a team waits for workers to arrive, in nanoseconds. The wait ends when all are there. A
// spinning pool answers within 1 us, a sleeping one within 20-50 us, and a busy one at any time,
// which is worth waiting for only if the loop takes much longer.
constexpr int64_t kLeastWindow = 4'000;
constexpr int64_t kMostWindow = 300'000;
constexpr int64_t kWindowOfWork = 8;  // an eighth of the time that the loop took before

// Waiting threads spin, since all members of a team were running when it was formed.
class SpinBarrier : public Barrier {
 public:
  // Called once, before any member can see the barrier.
  void SetSize(int size) { size_ = size; }

  bool Wait() override {
    if (broken_.load(std::memory_order_relaxed)) return false;
    const int round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return true;
    }
    for (int i = 0; round_.load(std::memory_order_acquire) == round; ++i) {
      if (broken_.load(std::memory_order_relaxed)) return false;
      Pause(i);
    }
    return true;
  }

  void Break() override { broken_.store(true, std::memory_order_relaxed); }

 private:
  int size_ = 1;
  std::atomic<bool> broken_{false};
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
};

class TeamState : public Shared<TeamState> {
 public:
  explicit TeamState(TeamLoop& loop) : loop_(loop) {}

  int RunHere(Pool* pool) {
    LaunchHistory& history = LaunchHistory::Global();
    const int64_t begin = LaunchHistory::Now();
    const int64_t stream = history.Stream(begin);
    const int64_t work = history.Work(loop_.code());
    // For a loop that has not run yet, it is unknown whether a worker is worth waking.
    const bool alone =
        work != 0 && !Crew::Global().IsWaiting() && !LaunchHistory::WorthWaking(stream + work);
    ProcessorShare& share = ProcessorShare::Global();
    const int threads = alone ? 1 : share.Threads(pool->size(), begin);
    const int size = threads == 1 ? RunAlone() : RunWith(pool, threads - 1, Window(work));
    const int64_t end = LaunchHistory::Now();
    const int64_t took = end - begin;
    const bool is_loss =
        threads > 1 && share.Ended(threads, preempted_.count(), took, work / threads, end);
    if (!is_loss) history.Ran(loop_.code(), took * size);
    history.LaunchEnded(stream + took);
    return size;
  }

 private:
  static constexpr int kClosed = 1 << 30;

  static int64_t Window(int64_t work) {
    return std::clamp(work / kWindowOfWork, kLeastWindow, kMostWindow);
  }

  int RunAlone() {
    barrier_.SetSize(1);
    TaskScope scope;
    loop_.Run(0, 1, barrier_);
    return 1;
  }

  int RunWith(Pool* pool, int helpers, int64_t window) {
    PreemptedThreads::Watch watch(&preempted_);
    for (int i = 0; i < helpers; ++i) {
      Ref();
      Crew::Global().Schedule(pool, [this] { Join(); });
    }
    const int size = Close(helpers, window);
    RunMember(0, size);
    unfinished_.Wait();
    return size;
  }

  // Closes the team, whose members are those that have joined; returns its size.
  int Close(int helpers, int64_t window) {
    const int64_t end = LaunchHistory::Now() + window;
    while (joined_.load(std::memory_order_relaxed) < helpers && LaunchHistory::Now() < end) {
      Pause(0);
    }
    const int size = joined_.fetch_or(kClosed) + 1;
    barrier_.SetSize(size);
    unfinished_.Add(size - 1);
    size_.store(size, std::memory_order_release);
    return size;
  }

  void Join() {
    // A pool with a full queue runs the closure inside Schedule. The caller is already in the team
    // and would wait for itself.
    if (!caller_.IsHere()) {
      int joined = joined_.load();
      while (!(joined & kClosed) && !joined_.compare_exchange_weak(joined, joined + 1)) {
      }
      if (!(joined & kClosed)) {
        RunWorker(joined + 1);
        unfinished_.Done();
      }
    }
    Unref();
  }

  void RunWorker(int task) {
    PreemptedThreads::Watch watch(&preempted_);
    caller_.LeaveProcessor();
    int size = 0;
    for (int i = 0; (size = size_.load(std::memory_order_acquire)) == 0; ++i) Pause(i);
    RunMember(task, size);
  }

  void RunMember(int task, int tasks) {
    {
      TaskScope scope;
      loop_.Run(task, tasks, barrier_);
    }
    Crew::Return();
  }

  TeamLoop& loop_;
  const Caller caller_;
  std::atomic<int> joined_{0};
  std::atomic<int> size_{0};  // 0 until the team is closed
  SpinBarrier barrier_;
  PreemptedThreads preempted_;
  Countdown unfinished_{0};
};

}  // namespace

int LaunchTeam(Pool* pool, TeamLoop& loop) {
  if (RunsAlone(pool)) {
    TaskScope scope;
    SpinBarrier barrier;
    loop.Run(0, 1, barrier);
    return 1;
  }
  auto* state = new TeamState(loop);
  const int size = state->RunHere(pool);
  state->Unref();
  return size;
}

}  // namespace composite
