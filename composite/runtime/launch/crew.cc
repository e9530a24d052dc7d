#include "composite/runtime/launch/crew.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "composite/runtime/launch/launch_history.h"
#include "composite/runtime/launch/launch_state.h"
#include "composite/runtime/launch/processor.h"

namespace composite {
namespace {

// How long a worker waits: longer than a caller in Python takes between two calls, with the short
// loops at their ends. A waiting worker yields its processor, but occupies a thread of the pool.
constexpr int64_t kStay = 100'000;  // nanoseconds
constexpr int kPausesPerClock = 16;

}  // namespace

thread_local Crew::Seat* Crew::own_ = nullptr;

Crew& Crew::Global() {
  static auto* const crew = new Crew;  // workers may outlive static objects
  return *crew;
}

void Crew::Schedule(Pool* pool, std::function<void()> work) {
  if (Give(work)) return;
  const int most = std::min(pool->size() / 2, kSeats);
  pool->Schedule([this, most, caller = Caller(), work = std::move(work)] {
    RunAndStay(work, caller.IsHere() ? 0 : most);
  });
}

bool Crew::IsWaiting() const {
  const int used = used_.load(std::memory_order_relaxed);
  for (int i = 0; i < used; ++i) {
    if (seats_[i].state.load(std::memory_order_relaxed) == State::kWaiting) return true;
  }
  return false;
}

void Crew::Return() {
  if (own_ == nullptr) return;
  own_->processor.store(CurrentProcessor(), std::memory_order_relaxed);
  State busy = State::kBusy;
  own_->state.compare_exchange_strong(busy, State::kWaiting, std::memory_order_release);
}

bool Crew::Give(std::function<void()>& work) {
  const int used = used_.load(std::memory_order_acquire);
  for (int i = 0; i < used; ++i) {
    Seat& seat = seats_[i];
    State waiting = State::kWaiting;
    if (seat.state.load(std::memory_order_relaxed) != waiting) continue;
    if (!seat.state.compare_exchange_strong(waiting, State::kTaken)) continue;
    const int here = CurrentProcessor();
    if (here >= 0 && seat.processor.load(std::memory_order_relaxed) == here) {
      MoveOff(here, seat.thread.load(std::memory_order_relaxed));  // reserved, so it is there
    }
    seat.work = std::move(work);
    seat.state.store(State::kGiven, std::memory_order_release);
    return true;
  }
  return false;
}

// Waits for more work afterwards if one of the first `most` seats is free.
void Crew::RunAndStay(std::function<void()> work, int most) {
  Seat* const outer = own_;  // set if the pool runs closures inside Schedule
  own_ = TakeSeat(most);
  for (;;) {
    work();
    work = nullptr;
    Return();
    if (own_ == nullptr || !Await(*own_)) break;
    work = std::exchange(own_->work, nullptr);
    own_->state.store(State::kBusy, std::memory_order_relaxed);
  }
  own_ = outer;
}

// Reserves one of the first `most` seats for work that is about to run; null if all are taken.
Crew::Seat* Crew::TakeSeat(int most) {
  for (int i = 0; i < most; ++i) {
    State empty = State::kEmpty;
    if (!seats_[i].state.compare_exchange_strong(empty, State::kBusy)) continue;
    seats_[i].thread.store(CurrentThread(), std::memory_order_relaxed);
    int used = used_.load(std::memory_order_relaxed);
    while (used <= i && !used_.compare_exchange_weak(used, i + 1, std::memory_order_release)) {
    }
    return &seats_[i];
  }
  return nullptr;
}

// Returns whether work was given. If not, the seat is free.
bool Crew::Await(Seat& seat) {
  const auto is_given = [&] { return seat.state.load(std::memory_order_acquire) == State::kGiven; };
  const int64_t end = LaunchHistory::Now() + kStay;
  for (int i = 1; !is_given(); ++i) {
    Pause(i);
    if (i % kPausesPerClock != 0) continue;
    seat.processor.store(CurrentProcessor(), std::memory_order_relaxed);
    if (LaunchHistory::Now() < end) continue;
    State waiting = State::kWaiting;
    if (seat.state.compare_exchange_strong(waiting, State::kEmpty)) return false;
    while (!is_given()) Pause(0);  // a caller has reserved the seat
  }
  return true;
}

}  // namespace composite
