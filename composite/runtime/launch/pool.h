// The threads that a launch may use: whatever can schedule a closure.
#ifndef COMPOSITE_RUNTIME_LAUNCH_POOL_H_
#define COMPOSITE_RUNTIME_LAUNCH_POOL_H_

#include <functional>

namespace composite {

class Pool {
 public:
  virtual ~Pool() = default;
  // Threads that may run tasks at once, the caller's own counted as one of them.
  virtual int size() const = 0;
  // Runs `work` at some time on some thread, or never if the pool is shut down, or before this call
  // returns. Must not wait for anything.
  virtual void Schedule(std::function<void()> work) = 0;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_POOL_H_
