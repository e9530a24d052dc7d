// How many processors the launches of this process can count on.
//
// Other processes, a quota or other launches take processors away. A thread that loses its
// processor inside of a loop keeps the others waiting for a time slice, which is longer than most
// loops. So launches use fewer threads after such a loss, and try more of them after a pause.
#ifndef COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_SHARE_H_
#define COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_SHARE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace composite {

// Times are in nanoseconds. Concurrent launches may use it: what it returns is a guess.
class ProcessorShare {
 public:
  static constexpr int64_t kTimeSlice = 500'000;  // shorter than any that Linux gives

  static ProcessorShare& Global() {
    static ProcessorShare share;
    return share;
  }

  // The threads of a launch that begins at `now`: at least one, at most `threads`.
  int Threads(int threads, int64_t now) {
    const int available = available_.load(std::memory_order_relaxed);
    if (available >= threads) return threads;
    int64_t retry = retry_at_.load(std::memory_order_relaxed);
    const int64_t pause = pause_.load(std::memory_order_relaxed);
    const bool tries = now >= retry && retry_at_.compare_exchange_strong(retry, now + pause);
    return tries ? std::min(threads, 2 * available) : available;
  }

  // A launch on several threads has ended at `now`. `usual` is the time that it takes as a rule, 0
  // if that is unknown; `preempted` of its threads lost their processor. Returns whether that cost
  // time.
  bool Ended(int threads, int preempted, int64_t took, int64_t usual, int64_t now) {
    if (preempted == 0 || usual == 0 || took <= 2 * usual || took - usual < kTimeSlice) {
      if (threads > available_.load(std::memory_order_relaxed)) {
        available_.store(threads, std::memory_order_relaxed);
      }
      return false;
    }
    // An idle machine has single losses, too. Losses that follow each other mean a load.
    const bool follows = now - retry_at_.load(std::memory_order_relaxed) < kMostPause;
    const int64_t before = follows ? kGrowth * pause_.load(std::memory_order_relaxed) : 0;
    const int64_t pause = std::min(std::max(before, took), kMostPause);
    available_.store(std::max(1, threads - preempted), std::memory_order_relaxed);
    pause_.store(pause, std::memory_order_relaxed);
    retry_at_.store(now + pause, std::memory_order_relaxed);
    return true;
  }

  // Forgets all losses. For tests that count workers.
  void Forget() { available_.store(kAll, std::memory_order_relaxed); }

 private:
  static constexpr int kAll = std::numeric_limits<int>::max() / 2;
  static constexpr int64_t kGrowth = 4;
  // To try more threads costs a time slice, some milliseconds: a small part of this.
  static constexpr int64_t kMostPause = 100'000'000;

  std::atomic<int> available_{kAll};
  std::atomic<int64_t> retry_at_{-kMostPause};
  std::atomic<int64_t> pause_{0};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_SHARE_H_
