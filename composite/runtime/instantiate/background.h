// One thread for work that nobody waits for.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_BACKGROUND_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_BACKGROUND_H_

#include <unistd.h>

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "composite/runtime/base/fork_mutex.h"

namespace composite {

// Never destroyed. The process does not end while the thread works: what it reads of TensorFlow is
// destroyed then.
class Background {
 public:
  static Background& Global();

  // Has the thread call `work` some time: never in the child of a fork, which has no such thread,
  // nor once the process ends. Where the system gives no thread, work waits for one until there is
  // more. TensorFlow's own pool would end the process then.
  void Schedule(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Background() = default;
  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Finish() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !queue_.empty(); }
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !is_working_; }

  const pid_t process_ = getpid();
  ForkMutex mu_;
  bool has_thread_ ABSL_GUARDED_BY(mu_) = false;
  bool is_working_ ABSL_GUARDED_BY(mu_) = false;
  bool ends_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_BACKGROUND_H_
