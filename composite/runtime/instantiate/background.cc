#include "composite/runtime/instantiate/background.h"

#include <cfenv>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "tensorflow/core/platform/denormal.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/setround.h"

namespace composite {

Background& Background::Global() {
  static Background* background = [] {
    auto* made = new Background;
    std::atexit([] { Global().Finish(); });
    return made;
  }();
  return *background;
}

void Background::Schedule(std::function<void()> work) {
  if (getpid() != process_) return;
  absl::MutexLock lock(mu_);
  if (ends_) return;
  queue_.push_back(std::move(work));
  StartThread();
}

void Background::StartThread() {
  if (has_thread_) return;
  try {
    std::thread([this] { Run(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error& error) {
    VLOG(1) << "no thread for work in the background: " << error.what();
  }
}

void Background::Run() {
  // As threads of TensorFlow's pools compute: constants are folded here.
  tensorflow::port::ScopedFlushDenormal flush;
  tensorflow::port::ScopedSetRound round(FE_TONEAREST);
  for (;;) {
    std::function<void()> work;
    {
      absl::MutexLock lock(mu_);
      is_working_ = false;
      mu_.Await(absl::Condition(this, &Background::HasWork));
      if (ends_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
      is_working_ = true;
    }
    work();
  }
}

void Background::Finish() {
  if (getpid() != process_) return;
  std::deque<std::function<void()>> dropped;  // destroyed without the lock
  absl::MutexLock lock(mu_);
  ends_ = true;
  dropped.swap(queue_);
  mu_.Await(absl::Condition(this, &Background::IsIdle));
}

}  // namespace composite
