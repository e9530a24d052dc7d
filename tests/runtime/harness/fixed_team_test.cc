// composite/runtime/launch/fixed_team.h, and the host of kernels on such a team.
#include "composite/runtime/launch/fixed_team.h"

#include <pthread.h>

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "composite/runtime/base/stats.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tests/runtime/harness/check.h"

namespace {

using composite::Barrier;
using composite::FixedTeam;

class Work : public composite::TeamLoop {
 public:
  using Part = std::function<void(int task, int tasks, Barrier& barrier)>;
  explicit Work(Part part) : part_(std::move(part)) {}
  void Run(int task, int tasks, Barrier& barrier) override { part_(task, tasks, barrier); }
  const void* code() const override { return "work"; }

 private:
  Part part_;
};

bool Run(FixedTeam& team, Work::Part part) {
  Work work(std::move(part));
  return team.Run(work);
}

void EachTaskHasAThreadOfItsOwn() {
  FixedTeam team(5);
  EXPECT(team.size() == 0);
  for (int round = 0; round < 20; ++round) {
    std::mutex mu;
    std::set<int> tasks;
    std::set<std::thread::id> threads;
    EXPECT(Run(team, [&](int task, int count, Barrier&) {
      EXPECT(count == 5);
      std::lock_guard<std::mutex> lock(mu);
      tasks.insert(task);
      threads.insert(std::this_thread::get_id());
    }));
    EXPECT(tasks == std::set<int>({0, 1, 2, 3, 4}) && threads.size() == 5);
    EXPECT(threads.count(std::this_thread::get_id()) == 1);
  }
  EXPECT(team.size() == 5);
}

// Plain memory between the tasks: under ThreadSanitizer a barrier that orders too little is a race.
void BarriersOrderWhatTasksWrite() {
  FixedTeam team(3);
  std::vector<int> values(3);
  EXPECT(Run(team, [&](int task, int tasks, Barrier& barrier) {
    for (int step = 0; step < 200; ++step) {
      const int seen = values[(task + 1) % tasks];
      barrier.Wait();
      EXPECT(seen == step);
      values[task] = step + 1;
      barrier.Wait();
    }
  }));
  EXPECT(values == std::vector<int>({200, 200, 200}));
}

void NobodyWaitsForATaskThatEnded() {
  FixedTeam team(4);
  for (int ends : {0, 1, 3}) {
    EXPECT(!Run(team, [&](int task, int, Barrier& barrier) {
      EXPECT(barrier.Wait());
      if (task == ends) return;
      EXPECT(!barrier.Wait());
      EXPECT(!barrier.Wait());
    }));
  }
  // One that waits where all others have ended.
  EXPECT(!Run(team, [](int task, int, Barrier& barrier) {
    if (task == 2) barrier.Wait();
  }));
  EXPECT(Run(team, [](int, int, Barrier& barrier) { barrier.Wait(); }));
}

void ATaskThatFailsLetsTheOthersGo() {
  FixedTeam team(3);
  // No hang, and none is reported: the loop says itself that it failed.
  EXPECT(Run(team, [](int task, int, Barrier& barrier) {
    if (task == 1) return barrier.Break();
    barrier.Wait();
    barrier.Wait();
  }));
}

void ALoopInATaskRunsThere() {
  FixedTeam team(3);
  EXPECT(Run(team, [&team](int, int, Barrier&) {
    const std::thread::id here = std::this_thread::get_id();
    EXPECT(Run(team, [here](int task, int tasks, Barrier& barrier) {
      EXPECT(task == 0 && tasks == 1 && std::this_thread::get_id() == here);
      barrier.Wait();
    }));
  }));
}

// A stack that no machine has memory for.
void ATeamIsAsLargeAsItGets() {
  pthread_attr_t before, attributes;
  EXPECT(pthread_getattr_default_np(&before) == 0 && pthread_attr_init(&attributes) == 0);
  EXPECT(pthread_attr_setstacksize(&attributes, size_t{1} << 50) == 0);
  EXPECT(pthread_setattr_default_np(&attributes) == 0);
  {
    FixedTeam team(4);
    EXPECT(Run(team, [](int task, int tasks, Barrier& barrier) {
      EXPECT(task == 0 && tasks == 1);
      barrier.Wait();
    }));
    EXPECT(team.size() == 1);
  }
  EXPECT(pthread_setattr_default_np(&before) == 0);
}

// The host.

struct GroupEnv {
  void* sync_handle;
  int32_t num_task;
};
using Lambda = int (*)(int, GroupEnv*, void*);

int (*launch)(Lambda, void*, int);
int (*launch_team)(Lambda, void*, int);
int (*barrier)(int, GroupEnv*);

void Fill() {
  composite::tvm_abi::FillSlots({reinterpret_cast<void**>(&launch), nullptr, nullptr, nullptr});
  composite::tvm_abi::FillSlots({reinterpret_cast<void**>(&launch_team),
                                 reinterpret_cast<void**>(&barrier), nullptr, nullptr});
}

int KeepTasks(int task, GroupEnv* env, void* data) {
  if (task == 0) *static_cast<int*>(data) = env->num_task;
  return 0;
}

// Task 0 has ended; what the others would do behind the barrier must not happen.
int SkipBarrier(int task, GroupEnv* env, void*) {
  if (task == 0) return 0;
  barrier(task, env);
  EXPECT(!"a task went on without one that had ended");
  return 0;
}

std::string Call(const std::function<int()>& body, FixedTeam* team) {
  static thread_local const std::function<int()>* current;
  current = &body;
  composite::tvm_abi::Host host;
  host.team = team;
  composite::tvm_abi::Error error;
  const auto kernel = [](void*, const composite::tvm_abi::Any*, int32_t, composite::tvm_abi::Any*) {
    return (*current)();
  };
  return composite::tvm_abi::Call(kernel, host, nullptr, 0, &error) ? "" : error.message;
}

void EveryLoopOfAKernelRunsOnTheTeam() {
  FixedTeam team(3);
  const int64_t launches = composite::GlobalStats().parallel_launches;
  for (auto slot : {launch, launch_team}) {
    int tasks = 0;
    EXPECT(Call([&] { return slot(KeepTasks, &tasks, 0); }, &team).empty());
    EXPECT(tasks == 3);
  }
  EXPECT(composite::GlobalStats().parallel_launches == launches);
}

void AKernelWhoseTasksDoNotMeetFails() {
  FixedTeam team(3);
  EXPECT(Call([] { return launch_team(SkipBarrier, nullptr, 0); }, &team) ==
         "a task ended while others waited for it at a barrier");
  FixedTeam alone(1);
  EXPECT(Call([] { return launch_team(SkipBarrier, nullptr, 0); }, &alone).empty());
}

}  // namespace

int main(int argc, char** argv) {
  Fill();
  return RunTests({{"each_task_has_a_thread_of_its_own", EachTaskHasAThreadOfItsOwn},
                   {"barriers_order_what_tasks_write", BarriersOrderWhatTasksWrite},
                   {"nobody_waits_for_a_task_that_ended", NobodyWaitsForATaskThatEnded},
                   {"a_task_that_fails_lets_the_others_go", ATaskThatFailsLetsTheOthersGo},
                   {"a_loop_in_a_task_runs_there", ALoopInATaskRunsThere},
                   {"a_team_is_as_large_as_it_gets", ATeamIsAsLargeAsItGets},
                   {"every_loop_of_a_kernel_runs_on_the_team", EveryLoopOfAKernelRunsOnTheTeam},
                   {"a_kernel_whose_tasks_do_not_meet_fails", AKernelWhoseTasksDoNotMeetFails}},
                  argc, argv);
}
