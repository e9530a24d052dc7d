// Releases what nodes keep between calls once they are no longer called.
#ifndef COMPOSITE_RUNTIME_MEMORY_IDLE_RELEASE_H_
#define COMPOSITE_RUNTIME_MEMORY_IDLE_RELEASE_H_

#include <atomic>
#include <cstdint>
#include <functional>

namespace composite {

// Counts a call of any node. Every so many calls, one releases what has become idle.
void CountCall();

// State that a node keeps for later calls. It is idle once the calls of other nodes since its last
// use exceed a multiple of the largest recent distance between two uses, and a minimum.
// Thread-safe.
class IdleRelease {
 public:
  // Any thread may call `release` until this object is destroyed. `release` must not take a lock
  // under which an IdleRelease is constructed or destroyed, and must not call Touch().
  explicit IdleRelease(std::function<void()> release);
  ~IdleRelease();
  IdleRelease(const IdleRelease&) = delete;
  IdleRelease& operator=(const IdleRelease&) = delete;

  // Records a use, after which there may be something to release.
  void Touch();

 private:
  friend class IdleReleases;

  bool IsOver(int64_t now) const;

  const std::function<void()> release_;
  std::atomic<bool> keeps_{false};
  std::atomic<int64_t> last_{0};     // use, as a number of calls of any node
  std::atomic<int64_t> between_{0};  // most calls between two uses; older distances decay
  // Guarded by the list of all.
  IdleRelease* next_ = nullptr;
  IdleRelease* previous_ = nullptr;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_IDLE_RELEASE_H_
