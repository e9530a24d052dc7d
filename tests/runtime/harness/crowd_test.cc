// Recurrences that meet at barriers, many at once, with plain memory between the tasks: under
// ThreadSanitizer a barrier or a launch that orders too little is a race here.
#include "tests/runtime/harness/crowd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "composite/runtime/launch/launch.h"
#include "composite/runtime/launch/launch_team.h"

namespace {

using composite::Barrier;
using composite::Launch;
using composite::LaunchTeam;
using composite::Pool;

constexpr int kUnits = 64;
constexpr int kSteps = 48;

float Weight(int i, int j) { return static_cast<float>((i * 7 + j * 3) % 11 - 5) / 40; }

// h = tanh(w h + 1/8), step by step: each element of a step reads all of the step before.
class Recurrence : public composite::TeamLoop {
 public:
  explicit Recurrence(std::atomic<int>* largest) : largest_(largest) {}

  void Run(int task, int tasks, Barrier& barrier) override {
    const int begin = kUnits * task / tasks, end = kUnits * (task + 1) / tasks;
    for (int step = 0; step < kSteps; ++step) {
      const std::array<float, kUnits>& last = h[step % 2];
      for (int i = begin; i < end; ++i) {
        float sum = 0.125f;
        for (int j = 0; j < kUnits; ++j) sum += Weight(i, j) * last[j];
        h[(step + 1) % 2][i] = std::tanh(sum);
      }
      barrier.Wait();
    }
    int seen = largest_->load();
    while (seen < tasks && !largest_->compare_exchange_weak(seen, tasks)) {
    }
  }
  const void* code() const override { return "recurrence"; }

  std::array<float, kUnits> h[2] = {};

 private:
  std::atomic<int>* const largest_;
};

std::array<float, kUnits> Result(Pool* pool, std::atomic<int>* largest) {
  Recurrence loop(largest);
  LaunchTeam(pool, loop);
  return loop.h[kSteps % 2];
}

class Doubling : public composite::Loop {
 public:
  void Run(int task, int tasks) override {
    const int size = static_cast<int>(values.size());
    for (int i = size * task / tasks; i < size * (task + 1) / tasks; ++i) values[i] *= 2;
  }
  const void* code() const override { return "doubling"; }

  std::vector<float> values = std::vector<float>(5000, 3);
};

void CrowdOf(int threads) {
  std::atomic<int> largest{0};
  const std::array<float, kUnits> alone = Result(nullptr, &largest);
  EXPECT(alone[0] != 0 && largest == 1);
  Crowd(
      threads, 10, [&](Pool* pool) { EXPECT(Result(pool, &largest) == alone); },
      [](Pool* pool) {
        Doubling loop;
        Launch(pool, 0, loop);
        EXPECT(loop.values == std::vector<float>(5000, 6));
      });
  EXPECT(largest <= threads);
  std::printf("   largest team: %d of %d\n", largest.load(), threads);
}

}  // namespace

int main(int argc, char** argv) {
  return RunTests({{"four_threads", [] { CrowdOf(4); }},
                   {"two_threads", [] { CrowdOf(2); }},
                   {"one_thread", [] { CrowdOf(1); }}},
                  argc, argv);
}
