// How long loops took in earlier launches, for the whole process. These are estimates: a launch
// uses them only to decide when to wake a worker.
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

  // The time of a monotonic clock in nanoseconds.
  static int64_t Now() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  // How long the launches took that ended shortly before `now` and followed each other without a
  // pause. A long series of small loops is worth waking a worker for, even if no single loop is.
  int64_t Stream(int64_t now) const {
    const bool goes_on = now - last_end_.load(std::memory_order_relaxed) < kStreamGap;
    return goes_on ? stream_.load(std::memory_order_relaxed) : 0;
  }

  // The recorded time of the loop with this code, summed over threads; 0 if it has not run.
  int64_t Work(const void* code) const { return Slot(code).load(std::memory_order_relaxed); }

  // Records the time of a loop, summed over threads. A new time has a weight of a quarter, since
  // the machine may have been busy with something else.
  void Ran(const void* code, int64_t work) {
    std::atomic<int64_t>& slot = Slot(code);
    const int64_t before = slot.load(std::memory_order_relaxed);
    slot.store(before == 0 ? work : before + (work - before) / 4, std::memory_order_relaxed);
  }

  void LaunchEnded(int64_t stream) {
    stream_.store(stream, std::memory_order_relaxed);
    last_end_.store(Now(), std::memory_order_relaxed);
  }

  // Waking a sleeping worker costs the caller 5-20 us, and the worker starts after 10-50 us. It is
  // not worth it for less work than this.
  static bool WorthWaking(int64_t work) { return work > kWorthWaking; }

 private:
  static constexpr int64_t kWorthWaking = 150'000;
  static constexpr int64_t kStreamGap = 100'000;
  static constexpr size_t kSlots = 1024;

  // Two loops may share a slot; each is then estimated by the time of the other.
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
