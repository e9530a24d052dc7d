// Many calls at once on one pool: what a process that serves does.
#ifndef TESTS_RUNTIME_HARNESS_CROWD_H_
#define TESTS_RUNTIME_HARNESS_CROWD_H_

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/runtime/harness/check.h"
#include "tests/runtime/harness/pools.h"

// Thirty-two callers of `recurrent`, which gathers teams, on a pool of so many threads; beside them
// callers of `other` and plain work that the pool is given. Each call checks its own result.
inline void Crowd(int threads, int rounds, const std::function<void(composite::Pool*)>& recurrent,
                  const std::function<void(composite::Pool*)>& other) {
  constexpr int kRecurrent = 32, kOthers = 4;
  std::atomic<int> calls{0}, plain_begun{0}, plain_done{0};
  {
    ThreadPool pool(threads, /*spin=*/true);
    const auto repeat = [&](const std::function<void(composite::Pool*)>& call) {
      for (int i = 0; i < rounds; ++i) {
        call(&pool);
        calls.fetch_add(1);
      }
    };
    std::vector<std::thread> callers;
    for (int c = 0; c < kRecurrent; ++c) callers.emplace_back(repeat, recurrent);
    for (int c = 0; c < kOthers; ++c) callers.emplace_back(repeat, other);
    // An op of TensorFlow's own: a closure now and then, which holds a thread for a while.
    do {
      plain_begun.fetch_add(1);
      pool.Schedule([&plain_done] {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        plain_done.fetch_add(1);
      });
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    } while (calls.load() < (kRecurrent + kOthers) * rounds);
    for (std::thread& caller : callers) caller.join();
  }
  EXPECT(plain_begun.load() > 0 && plain_done.load() == plain_begun.load());
}

#endif  // TESTS_RUNTIME_HARNESS_CROWD_H_
