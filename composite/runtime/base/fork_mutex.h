// The mutex of whatever outlives a call. A fork copies memory, with the locks that other threads
// hold, and not the threads: without more, the child would wait for ever for one of them.
#ifndef COMPOSITE_RUNTIME_BASE_FORK_MUTEX_H_
#define COMPOSITE_RUNTIME_BASE_FORK_MUTEX_H_

#include <functional>

#include "absl/synchronization/mutex.h"

namespace composite {

// The thread that forks takes all of these first, so that the child finds each of them free, and
// what it guards whole. Nobody may fork, nor wait for the thread that does, while it holds one.
class ForkMutex : public absl::Mutex {
 public:
  // `in_child` makes anew what belongs to the mutex and may have waiters: condition variables.
  explicit ForkMutex(std::function<void()> in_child = nullptr);
  ~ForkMutex();

 private:
  friend class ForkMutexes;

  const std::function<void()> in_child_;
  // Guarded by the list of all.
  ForkMutex* next_ = nullptr;
  ForkMutex* previous_ = nullptr;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_FORK_MUTEX_H_
