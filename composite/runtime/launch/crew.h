// Workers that stay a moment after their work. A launch of a few microseconds would pay as much
// again for a pool's queue: a pool of TensorFlow's puts work into the queue of any of its threads
// and wakes one more, which then takes a processor from those that work. A worker that stays takes
// the next closure out of its own hand.
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

  // Runs `work` on a worker that stays, of whichever pool; if there is none on a thread of `pool`,
  // as Pool::Schedule does, which then stays. At most half of a pool stay: others have work for it,
  // too, and where two threads are all, a second one would take the caller's processor.
  void Schedule(Pool* pool, std::function<void()> work);

  // Whether a worker waits at this moment.
  bool IsWaiting() const;

  // For work that has nothing more to do but to return: the next may be given. Its launch may be
  // over, and the next begin, before it has returned.
  static void Return();

 private:
  enum class State { kEmpty, kBusy, kWaiting, kTaken, kGiven };

  // Each worker has a seat, on a cache line of its own. A caller takes the seat before it gives
  // work, so that `work` has one writer.
  struct alignas(64) Seat {
    std::atomic<State> state{State::kEmpty};
    std::atomic<int> thread{0};      // of its worker
    std::atomic<int> processor{-1};  // that this one was on a moment ago, while it waits
    std::function<void()> work;
  };

  // A worker on the caller's own processor would begin when the caller sleeps: it is moved off.
  bool Give(std::function<void()>& work);
  void RunAndStay(std::function<void()> work, int most);
  Seat* TakeSeat(int most);
  static bool Await(Seat& seat);

  static thread_local Seat* own_;

  static constexpr int kSeats = 64;
  std::array<Seat, kSeats> seats_;
  std::atomic<int> used_{0};  // no seat from here on was ever used
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_CREW_H_
