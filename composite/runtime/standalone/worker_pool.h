// Threads for kernels where nobody else has some: one fewer than the CPUs that this process may
// use, or than COMPOSITE_THREADS in the environment says. They start when they are first needed.
#ifndef COMPOSITE_RUNTIME_STANDALONE_WORKER_POOL_H_
#define COMPOSITE_RUNTIME_STANDALONE_WORKER_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "composite/runtime/launch/pool.h"

namespace composite {
namespace standalone {

class WorkerPool : public Pool {
 public:
  // The one of this process. A child of fork has one of its own: the parent's threads are not
  // there.
  static WorkerPool* Global();

  explicit WorkerPool(int size) : size_(size) {}
  int size() const override { return size_; }
  void Schedule(std::function<void()> work) override;

 private:
  void Work();

  const int size_;
  std::mutex mu_;
  std::condition_variable more_;
  // Under mu_:
  std::deque<std::function<void()>> queue_;
  int threads_ = 0;
  int waiting_ = 0;
};

}  // namespace standalone
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STANDALONE_WORKER_POOL_H_
