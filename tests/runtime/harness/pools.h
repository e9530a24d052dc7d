// Pools for tests: real threads, threads that never come, and a pool that runs work at once.
#ifndef TESTS_RUNTIME_HARNESS_POOLS_H_
#define TESTS_RUNTIME_HARNESS_POOLS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "composite/runtime/launch/pool.h"

// Blocking workers. `spin` keeps them awake between launches, as TensorFlow's pool does for a
// while.
class ThreadPool : public composite::Pool {
 public:
  explicit ThreadPool(int threads, bool spin = false) : spin_(spin) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~ThreadPool() override {
    {
      std::lock_guard<std::mutex> lock(mu_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const override { return static_cast<int>(threads_.size()); }
  void Schedule(std::function<void()> work) override {
    {
      std::lock_guard<std::mutex> lock(mu_);
      queue_.push_back(std::move(work));
    }
    wake_.notify_one();
  }

 private:
  void Work() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock<std::mutex> lock(mu_);
        while (spin_ && queue_.empty() && !stop_) {
          lock.unlock();
          std::this_thread::yield();
          lock.lock();
        }
        wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      work();
    }
  }

  const bool spin_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// Keeps what it is given; RunLate() is a worker that comes when the launch is over.
class SleepingPool : public composite::Pool {
 public:
  int size() const override { return 4; }
  void Schedule(std::function<void()> work) override { kept_.push_back(std::move(work)); }
  int scheduled() const { return static_cast<int>(kept_.size()); }
  int RunLate() {
    const int count = static_cast<int>(kept_.size());
    for (auto& work : kept_) work();
    kept_.clear();
    return count;
  }

 private:
  std::vector<std::function<void()>> kept_;
};

// What a pool with a full queue does.
class InlinePool : public composite::Pool {
 public:
  int size() const override { return 4; }
  void Schedule(std::function<void()> work) override { work(); }
};

#endif  // TESTS_RUNTIME_HARNESS_POOLS_H_
