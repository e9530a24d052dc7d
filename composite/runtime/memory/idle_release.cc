#include "composite/runtime/memory/idle_release.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "composite/runtime/base/fork_mutex.h"

namespace composite {
namespace {

constexpr int64_t kLeast = 128;  // calls of other nodes before anything is idle
constexpr int64_t kTimes = 4;    // distances between uses before the next one is overdue
constexpr int64_t kLooks = 128;  // calls between two searches for idle state
constexpr int64_t kDecay = 64;   // uses after which an older distance has decayed to a third

std::atomic<int64_t> calls{0};  // of any node

}  // namespace

class IdleReleases {
 public:
  static IdleReleases& Global() {
    static IdleReleases* all = new IdleReleases;  // nodes may outlive static objects
    return *all;
  }

  void Add(IdleRelease* one) {
    absl::MutexLock lock(mu_);
    one->next_ = first_;
    if (first_ != nullptr) first_->previous_ = one;
    first_ = one;
  }

  void Remove(IdleRelease* one) {
    absl::MutexLock lock(mu_);
    if (one->next_ != nullptr) one->next_->previous_ = one->previous_;
    (one->previous_ != nullptr ? one->previous_->next_ : first_) = one->next_;
  }

  void Look(int64_t now) {
    if (!mu_.TryLock()) return;  // somebody else looks, or comes or goes
    for (IdleRelease* one = first_; one != nullptr; one = one->next_) {
      if (one->IsOver(now) && one->keeps_.exchange(false)) one->release_();
    }
    mu_.Unlock();
  }

 private:
  ForkMutex mu_;
  IdleRelease* first_ ABSL_GUARDED_BY(mu_) = nullptr;
};

void CountCall() {
  const int64_t now = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (now % kLooks == 0) IdleReleases::Global().Look(now);
}

IdleRelease::IdleRelease(std::function<void()> release) : release_(std::move(release)) {
  IdleReleases::Global().Add(this);
}

IdleRelease::~IdleRelease() { IdleReleases::Global().Remove(this); }

void IdleRelease::Touch() {
  const int64_t now = calls.load(std::memory_order_relaxed);
  const int64_t last = last_.exchange(now, std::memory_order_relaxed);
  const int64_t before = between_.load(std::memory_order_relaxed);
  const int64_t own = last == 0 ? 0 : now - last;
  between_.store(std::max(own, before - before / kDecay), std::memory_order_relaxed);
  keeps_.store(true);
}

bool IdleRelease::IsOver(int64_t now) const {
  const int64_t idle = now - last_.load(std::memory_order_relaxed);
  return idle > kLeast + kTimes * between_.load(std::memory_order_relaxed);
}

}  // namespace composite
