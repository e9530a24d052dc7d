// Workers that wait for more work for a short time after they have finished.
//
// For a launch of a few microseconds, the queue of a pool costs as much as the work. TensorFlow's
// pools put a closure into the queue of an arbitrary thread and wake another thread, which takes a
// processor from those that work. A worker that waits is handed its next closure directly.
#ifndef COMPOSITE_RUNTIME_LAUNCH_CREW_H_
#define COMPOSITE_RUNTIME_LAUNCH_CREW_H_

#include <array>
#include <atomic>
#include <functional>

#include "composite/runtime/launch/pool.h"

namespace composite {

class Crew {
 public:
  static Crew& Global();

  // Runs `work` on a waiting worker of any pool. If none waits, schedules it on `pool`, and the
  // thread that runs it waits afterwards. At most half of the threads of a pool wait: the pool has
  // other work too, and in a pool of two threads a second one would take the caller's processor.
  void Schedule(Pool* pool, std::function<void()> work);

  // Whether a worker is waiting now.
  bool IsWaiting() const;

  // Called by work that has only to return: its worker can be given the next closure. The launch
  // may end, and the next one begin, before the work has returned.
  static void Return();

 private:
  enum class State { kEmpty, kBusy, kWaiting, kTaken, kGiven };

  // Each worker has a seat on its own cache line. A caller reserves the seat before it hands over
  // work, so that `work` has only one writer.
  struct alignas(64) Seat {
    std::atomic<State> state{State::kEmpty};
    std::atomic<int> thread{0};      // the ID of its worker
    std::atomic<int> processor{-1};  // where the waiting worker last was
    std::function<void()> work;
  };

  // A worker on the caller's processor would not begin until the caller sleeps, so it is moved.
  bool Give(std::function<void()>& work);
  void RunAndStay(std::function<void()> work, int most);
  Seat* TakeSeat(int most);
  static bool Await(Seat& seat);

  static thread_local Seat* own_;

  static constexpr int kSeats = 64;
  std::array<Seat, kSeats> seats_;
  std::atomic<int> used_{0};  // seats from this index on were never used
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_CREW_H_
