// What earlier launches tell about the next: how long a loop takes. Guesses for the whole process,
// by which a launch only decides how early it wakes a worker.
#ifndef COMPOSITE_RUNTIME_LAUNCH_LAUNCH_HISTORY_H_
#define COMPOSITE_RUNTIME_LAUNCH_LAUNCH_HISTORY_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace composite {

class LaunchHistory {
 public:
  static LaunchHistory& Global() {
    static LaunchHistory history;
    return history;
  }

  // Nanoseconds of a clock that does not go back.
  static int64_t Now() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  // The time taken by the launches that ended a moment before `now`, without a break between them:
  // a long stack of small loops is worth a wake-up although none of them is.
  int64_t Stream(int64_t now) const {
    const bool goes_on = now - last_end_.load(std::memory_order_relaxed) < kStreamGap;
    return goes_on ? stream_.load(std::memory_order_relaxed) : 0;
  }

  // The time that the loop of this code took before, summed over threads; 0 if it never ran.
  int64_t Work(const void* code) const { return Slot(code).load(std::memory_order_relaxed); }

  // The time of a loop, summed over threads. A moment in which the machine did something else
  // counts a quarter.
  void Ran(const void* code, int64_t work) {
    std::atomic<int64_t>& slot = Slot(code);
    const int64_t before = slot.load(std::memory_order_relaxed);
    slot.store(before == 0 ? work : before + (work - before) / 4, std::memory_order_relaxed);
  }

  void LaunchEnded(int64_t stream) {
    stream_.store(stream, std::memory_order_relaxed);
    last_end_.store(Now(), std::memory_order_relaxed);
  }

  // To wake a sleeping worker costs its caller 5-20 us and brings it in after 10-50 us: not worth
  // it for less work than this.
  static bool WorthWaking(int64_t work) { return work > kWorthWaking; }

 private:
  static constexpr int64_t kWorthWaking = 150'000;
  static constexpr int64_t kStreamGap = 100'000;
  static constexpr size_t kSlots = 1024;

  // Two loops may meet in one slot: each then guesses by the other's time.
  std::atomic<int64_t>& Slot(const void* code) const {
    const uint64_t hash = reinterpret_cast<uintptr_t>(code) * 0x9E3779B97F4A7C15u;
    return work_[hash >> 54];
  }

  std::atomic<int64_t> last_end_{0};
  std::atomic<int64_t> stream_{0};
  mutable std::array<std::atomic<int64_t>, kSlots> work_{};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_LAUNCH_HISTORY_H_
