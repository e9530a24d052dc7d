// What both kinds of launch share: waiting, state that outlives the launch, nested launches.
#ifndef COMPOSITE_RUNTIME_LAUNCH_LAUNCH_STATE_H_
#define COMPOSITE_RUNTIME_LAUNCH_LAUNCH_STATE_H_

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "composite/runtime/launch/launch_history.h"
#include "composite/runtime/launch/pool.h"
#include "composite/runtime/launch/processor.h"
#include "composite/runtime/launch/processor_share.h"

namespace composite {

inline void Pause(int round) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
  // If there are more runnable threads than cores, the awaited thread may need this core.
  if (round % 64 == 63) sched_yield();
}

// A launch inside a task runs serially.
inline thread_local bool inside_task = false;

inline bool RunsAlone(const Pool* pool) {
  return inside_task || pool == nullptr || pool->size() <= 1;
}

class TaskScope {
 public:
  TaskScope() : outer_(inside_task) { inside_task = true; }
  ~TaskScope() { inside_task = outer_; }
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

 private:
  bool outer_;
};

// Counts the threads that were preempted in a launch of a time slice or more.
class PreemptedThreads {
 public:
  // Watches the thread that creates it until it is destroyed. The system call takes as long as a
  // small loop, so a thread makes it at most once in a time slice, and at the end of long launches.
  class Watch {
   public:
    explicit Watch(PreemptedThreads* threads) : threads_(threads) {
      if (begin_ - asked_at < ProcessorShare::kTimeSlice) return;
      known = Preemptions();
      asked_at = begin_;
    }
    ~Watch() {
      if (LaunchHistory::Now() - begin_ < ProcessorShare::kTimeSlice) return;
      if (Preemptions() != known) threads_->count_.fetch_add(1, std::memory_order_relaxed);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    // How often this thread was preempted, and when the system was last asked.
    static inline thread_local int64_t known = 0;
    static inline thread_local int64_t asked_at = -ProcessorShare::kTimeSlice;

    PreemptedThreads* const threads_;
    const int64_t begin_ = LaunchHistory::Now();
  };

  // The count of the watches that have ended.
  int count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> count_{0};
};

// Counts running tasks, and lets one thread wait until none is left.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}

  void Add(int count) { left_.fetch_add(count); }

  void Done(int count = 1) {
    if (left_.fetch_sub(count) != count) return;
    // Either this thread sees that the other sleeps, or the other sees zero: both access `left_`
    // and `sleeping_` in sequentially consistent order.
    if (!sleeping_.load()) return;
    std::lock_guard<std::mutex> lock(mu_);
    wake_.notify_one();
  }

  void Wait() {
    for (int i = 0; i < kSpins; ++i) {
      if (left_.load(std::memory_order_acquire) == 0) return;
      Pause(i);
    }
    std::unique_lock<std::mutex> lock(mu_);
    sleeping_.store(true);
    wake_.wait(lock, [this] { return left_.load() == 0; });
  }

 private:
  // How often a caller polls before it sleeps. To wake it takes 20-50 us.
  static constexpr int kSpins = 4096;

  std::atomic<int> left_;
  std::atomic<bool> sleeping_{false};
  std::mutex mu_;
  std::condition_variable wake_;
};

// Shared by the caller and the workers that it woke. A worker may start long after the launch has
// returned, and then reads nothing but this state, which is therefore reference-counted.
template <typename State>
class Shared {
 public:
  void Ref() { owners_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete static_cast<State*>(this);
  }

 protected:
  ~Shared() = default;

 private:
  std::atomic<int> owners_{1};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_LAUNCH_STATE_H_
