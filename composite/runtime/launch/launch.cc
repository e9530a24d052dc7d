#include "composite/runtime/launch/launch.h"

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

// More tasks than threads, so that a worker that starts late still finds tasks, and the caller
// waits for one task at most.
constexpr int kTasksPerThread = 4;

int64_t Since(int64_t begin) { return LaunchHistory::Now() - begin; }

void RunAll(int tasks, Loop& loop) {
  TaskScope scope;
  for (int task = 0; task < tasks; ++task) loop.Run(task, tasks);
}

// A launch that may wake workers.
class LaunchState : public Shared<LaunchState> {
 public:
  LaunchState(Pool* pool, int tasks, int helpers, Loop& loop)
      : pool_(pool), tasks_(tasks), helpers_(helpers), loop_(loop), unfinished_(tasks) {}

  // Runs one task on this thread and returns an estimate of the time of all tasks.
  int64_t Try() {
    const int64_t begin = LaunchHistory::Now();
    TaskScope scope;
    loop_.Run(Claim(), tasks_);
    const int64_t took = Since(begin);
    work_.fetch_add(took, std::memory_order_relaxed);
    unfinished_.Done();
    return took * tasks_;
  }

  // Runs the remaining tasks, with workers if `wakes`. Returns the time of all tasks, summed over
  // threads.
  int64_t RunHere(bool wakes) {
    PreemptedThreads::Watch watch(&preempted_);
    if (wakes) Wake(0);
    unfinished_.Done(RunFrom(Claim()));
    unfinished_.Wait();
    return work_.load(std::memory_order_relaxed);
  }

  int preempted() const { return preempted_.count(); }

 private:
  int Claim() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // Each worker that finds work wakes the next one, so that the caller wakes only one, whatever the
  // number of threads.
  void Wake(int helper) {
    if (helper >= helpers_) return;
    Ref();
    Crew::Global().Schedule(pool_, [this, helper] { Help(helper); });
  }

  void Help(int helper) {
    // The launch cannot return while a task is claimed; pool_ and loop_ are valid only then.
    const int task = Claim();
    if (task < tasks_) unfinished_.Done(RunWorker(helper, task));
    Unref();
  }

  int RunWorker(int helper, int task) {
    PreemptedThreads::Watch watch(&preempted_);
    caller_.LeaveProcessor();
    Wake(2 * helper + 1);
    Wake(2 * helper + 2);
    return RunFrom(task);
  }

  // Runs `task` if there is such a task, and then every task that can be claimed. Returns how many
  // ran. The clock is read once for all of them, since reading it takes as long as a small task.
  int RunFrom(int task) {
    if (task >= tasks_) return 0;
    const int64_t begin = LaunchHistory::Now();
    int ran = 0;
    {
      TaskScope scope;
      for (; task < tasks_; task = Claim(), ++ran) loop_.Run(task, tasks_);
    }
    work_.fetch_add(Since(begin), std::memory_order_relaxed);
    Crew::Return();
    return ran;
  }

  Pool* const pool_;
  const int tasks_;
  const int helpers_;
  Loop& loop_;
  const Caller caller_;
  std::atomic<int> next_{0};
  std::atomic<int64_t> work_{0};  // nanoseconds
  PreemptedThreads preempted_;
  Countdown unfinished_;
};

}  // namespace

int Launch(Pool* pool, int tasks, Loop& loop) {
  const bool alone = RunsAlone(pool);
  if (tasks <= 0) tasks = alone ? 1 : pool->size() * kTasksPerThread;
  if (alone || tasks == 1) {
    RunAll(tasks, loop);
    return tasks;
  }
  LaunchHistory& history = LaunchHistory::Global();
  const int64_t begin = LaunchHistory::Now();
  const int64_t stream = history.Stream(begin);
  const auto worth_waking = [&](int64_t work) {
    return Crew::Global().IsWaiting() || LaunchHistory::WorthWaking(stream + work);
  };
  const int64_t usual = history.Work(loop.code());
  ProcessorShare& share = ProcessorShare::Global();
  const bool wakes = usual == 0 || worth_waking(usual);
  const int threads = wakes ? share.Threads(std::min(pool->size(), tasks), begin) : 1;
  if (threads == 1) {
    RunAll(tasks, loop);
    history.Ran(loop.code(), Since(begin));
  } else {
    auto* state = new LaunchState(pool, tasks, threads - 1, loop);
    const int64_t expected = usual != 0 ? usual : state->Try();
    const int64_t work = state->RunHere(worth_waking(expected));
    const int64_t end = LaunchHistory::Now();
    const bool is_loss =
        share.Ended(threads, state->preempted(), end - begin, usual / threads, end);
    if (!is_loss) history.Ran(loop.code(), work);
    state->Unref();
  }
  history.LaunchEnded(stream + Since(begin));
  return tasks;
}

}  // namespace composite
