// An estimate of how many processors the launches of this process can use.
//
// Other processes, a CPU quota and other launches compete for processors. If a thread is preempted
// in a loop, the others wait for a time slice, which is longer than most loops. So launches use
// fewer threads after a preemption, and try more threads after a pause.
#ifndef COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_SHARE_H_
#define COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_SHARE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace composite {

// Times are in nanoseconds. Thread-safe, without exact results: concurrent updates may be lost.
class ProcessorShare {
 public:
  static constexpr int64_t kTimeSlice = 500'000;  // shorter than Linux's shortest

  static ProcessorShare& Global() {
    static ProcessorShare share;
    return share;
  }

  // How many threads a launch that begins at `now` should use: from 1 to `threads`.
  int Threads(int threads, int64_t now) {
    const int available = available_.load(std::memory_order_relaxed);
    if (available >= threads) return threads;
    int64_t retry = retry_at_.load(std::memory_order_relaxed);
    const int64_t pause = pause_.load(std::memory_order_relaxed);
    const bool tries = now >= retry && retry_at_.compare_exchange_strong(retry, now + pause);
    return tries ? std::min(threads, 2 * available) : available;
  }

  // Records a launch on several threads that ended at `now`. `usual` is how long it usually takes,
  // 0 if that is unknown; `preempted` is how many of its threads were preempted. Returns whether
  // the preemptions made the launch slower.
  bool Ended(int threads, int preempted, int64_t took, int64_t usual, int64_t now) {
    if (preempted == 0 || usual == 0 || took <= 2 * usual || took - usual < kTimeSlice) {
      if (threads > available_.load(std::memory_order_relaxed)) {
        available_.store(threads, std::memory_order_relaxed);
      }
      return false;
    }
    // Single preemptions occur on an idle machine too. Repeated ones show that it is busy.
    const bool follows = now - retry_at_.load(std::memory_order_relaxed) < kMostPause;
    const int64_t before = follows ? kGrowth * pause_.load(std::memory_order_relaxed) : 0;
    const int64_t pause = std::min(std::max(before, took), kMostPause);
    available_.store(std::max(1, threads - preempted), std::memory_order_relaxed);
    pause_.store(pause, std::memory_order_relaxed);
    retry_at_.store(now + pause, std::memory_order_relaxed);
    return true;
  }

  // Forgets all preemptions. For tests that count workers.
  void Forget() { available_.store(kAll, std::memory_order_relaxed); }

 private:
  static constexpr int kAll = std::numeric_limits<int>::max() / 2;
  static constexpr int64_t kGrowth = 4;
  // A retry that fails delays a launch by a time slice, a few milliseconds. With this pause between
  // retries that is a small share of the time.
  static constexpr int64_t kMostPause = 100'000'000;

  std::atomic<int> available_{kAll};
  std::atomic<int64_t> retry_at_{-kMostPause};
  std::atomic<int64_t> pause_{0};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_PROCESSOR_SHARE_H_
