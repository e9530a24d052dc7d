#include "composite/runtime/standalone/worker_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

namespace composite {
namespace standalone {
namespace {

int Size() {
  const char* stated = std::getenv("COMPOSITE_THREADS");
  const int threads = stated != nullptr ? std::atoi(stated) : 0;
  if (threads > 0) return threads;
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1u, std::thread::hardware_concurrency());
}

std::atomic<WorkerPool*> pool{nullptr};

void Renew() { pool = new WorkerPool(Size()); }

}  // namespace

WorkerPool* WorkerPool::Global() {
  // Never deleted: its threads may be running while the process ends.
  static const bool is_made = [] {
    Renew();
    return pthread_atfork(nullptr, nullptr, Renew) == 0;
  }();
  static_cast<void>(is_made);
  return pool;
}

void WorkerPool::Schedule(std::function<void()> work) {
  std::lock_guard<std::mutex> lock(mu_);
  queue_.push_back(std::move(work));
  if (static_cast<int>(queue_.size()) > waiting_ && threads_ + 1 < size_) {
    try {
      std::thread(&WorkerPool::Work, this).detach();
      ++threads_;
    } catch (const std::system_error&) {
      // The system gives no more threads: those that are there, or the caller, run the work.
    }
  }
  more_.notify_one();
}

void WorkerPool::Work() {
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    ++waiting_;
    more_.wait(lock, [this] { return !queue_.empty(); });
    --waiting_;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace standalone
}  // namespace composite
