// The threads that a launch may use: anything that can schedule a closure.
#ifndef COMPOSITE_RUNTIME_LAUNCH_POOL_H_
#define COMPOSITE_RUNTIME_LAUNCH_POOL_H_

#include <functional>

namespace composite {

class Pool {
 public:
  virtual ~Pool() = default;
  // How many threads may run tasks at once, the caller's included.
  virtual int size() const = 0;
  // Runs `work` on any thread at any time, possibly before this call returns, or never if the pool
  // is shut down. Must not block.
  virtual void Schedule(std::function<void()> work) = 0;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_LAUNCH_POOL_H_
