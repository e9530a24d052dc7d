#include "composite/runtime/hybrid/idle_machines.h"

#include <utility>

namespace composite {

IdleMachines::~IdleMachines() {
  for (Seat& seat : seats_) delete seat.main.load();
}

IdleMachines::Main IdleMachines::Take() {
  if (Main own{OwnSeat().main.exchange(nullptr, std::memory_order_acquire)}) return own;
  {
    absl::MutexLock lock(mu_);
    if (!others_.empty()) {
      Main main = std::move(others_.back());
      others_.pop_back();
      return main;
    }
  }
  for (Seat& seat : seats_) {
    if (seat.main.load(std::memory_order_relaxed) == nullptr) continue;
    if (Main main{seat.main.exchange(nullptr, std::memory_order_acquire)}) return main;
  }
  return nullptr;
}

void IdleMachines::Give(Main main) {
  Main before(OwnSeat().main.exchange(main.release(), std::memory_order_acq_rel));
  if (before == nullptr) return;
  absl::MutexLock lock(mu_);
  others_.push_back(std::move(before));
}

IdleMachines::Seat& IdleMachines::OwnSeat() {
  static std::atomic<unsigned> threads{0};
  thread_local const unsigned number = threads.fetch_add(1, std::memory_order_relaxed);
  return seats_[number % kSeats];
}

}  // namespace composite
