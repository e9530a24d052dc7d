#include "composite/runtime/memory/idle.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "composite/runtime/base/fork_mutex.h"

namespace composite {
namespace {

constexpr int64_t kLeast = 128;  // calls
constexpr int64_t kTimes = 4;
constexpr int64_t kLooks = 128;    // calls, of which one looks
constexpr int64_t kWeighted = 64;  // uses, after which a third is left of how much an older counts

std::atomic<int64_t> calls{0};  // of any node

}  // namespace

class IdleOnes {
 public:
  static IdleOnes& Global() {
    static IdleOnes* all = new IdleOnes;  // nodes may outlive static objects
    return *all;
  }

  void Add(Idle* one) {
    absl::MutexLock lock(&mu_);
    one->next_ = first_;
    if (first_ != nullptr) first_->previous_ = one;
    first_ = one;
  }

  void Remove(Idle* one) {
    absl::MutexLock lock(&mu_);
    if (one->next_ != nullptr) one->next_->previous_ = one->previous_;
    (one->previous_ != nullptr ? one->previous_->next_ : first_) = one->next_;
  }

  void Look(int64_t now) {
    if (!mu_.TryLock()) return;  // somebody else looks, or comes or goes
    for (Idle* one = first_; one != nullptr; one = one->next_) {
      if (one->IsOver(now) && one->keeps_.exchange(false)) one->let_go_();
    }
    mu_.Unlock();
  }

 private:
  ForkMutex mu_;
  Idle* first_ ABSL_GUARDED_BY(mu_) = nullptr;
};

void NoteCall() {
  const int64_t now = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (now % kLooks == 0) IdleOnes::Global().Look(now);
}

Idle::Idle(std::function<void()> let_go) : let_go_(std::move(let_go)) {
  IdleOnes::Global().Add(this);
}

Idle::~Idle() { IdleOnes::Global().Remove(this); }

void Idle::Use() {
  const int64_t now = calls.load(std::memory_order_relaxed);
  const int64_t last = last_.exchange(now, std::memory_order_relaxed);
  const int64_t before = between_.load(std::memory_order_relaxed);
  const int64_t own = last == 0 ? 0 : now - last;
  between_.store(std::max(own, before - before / kWeighted), std::memory_order_relaxed);
  keeps_.store(true);
}

bool Idle::IsOver(int64_t now) const {
  const int64_t idle = now - last_.load(std::memory_order_relaxed);
  return idle > kLeast + kTimes * between_.load(std::memory_order_relaxed);
}

}  // namespace composite
