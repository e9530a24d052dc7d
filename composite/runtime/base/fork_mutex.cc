#include "composite/runtime/base/fork_mutex.h"

#include <pthread.h>
#include <sched.h>

#include <new>
#include <utility>

namespace composite {

class ForkMutexes {
 public:
  static ForkMutexes& Global() {
    static ForkMutexes* all = new ForkMutexes;  // mutexes of other threads outlive static objects
    return *all;
  }

  void Add(ForkMutex* mutex) {
    absl::MutexLock lock(mu_);
    mutex->next_ = first_;
    if (first_ != nullptr) first_->previous_ = mutex;
    first_ = mutex;
  }

  void Remove(ForkMutex* mutex) {
    absl::MutexLock lock(mu_);
    if (mutex->next_ != nullptr) mutex->next_->previous_ = mutex->previous_;
    (mutex->previous_ != nullptr ? mutex->previous_->next_ : first_) = mutex->next_;
  }

 private:
  ForkMutexes() {
    pthread_atfork([] { Global().Prepare(); }, [] { Global().InParent(); },
                   [] { Global().InChild(); });
  }

  // All or none: so nobody needs to know in which order other threads take several.
  void Prepare() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (;;) {
      mu_.Lock();
      ForkMutex* mutex = first_;
      while (mutex != nullptr && mutex->TryLock()) mutex = mutex->next_;
      if (mutex == nullptr) return;
      Unlock(mutex);
      sched_yield();
    }
  }

  void InParent() { Unlock(nullptr); }

  // Threads that waited for one of them are not here to be woken.
  void InChild() {
    for (ForkMutex* mutex = first_; mutex != nullptr; mutex = mutex->next_) {
      new (static_cast<absl::Mutex*>(mutex)) absl::Mutex;
      if (mutex->in_child_ != nullptr) mutex->in_child_();
    }
    new (&mu_) absl::Mutex;
  }

  // Those before `end`, and the list.
  void Unlock(const ForkMutex* end) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (ForkMutex* mutex = first_; mutex != end; mutex = mutex->next_) mutex->Unlock();
    mu_.Unlock();
  }

  absl::Mutex mu_;
  ForkMutex* first_ = nullptr;
};

ForkMutex::ForkMutex(std::function<void()> in_child) : in_child_(std::move(in_child)) {
  ForkMutexes::Global().Add(this);
}

ForkMutex::~ForkMutex() { ForkMutexes::Global().Remove(this); }

}  // namespace composite
