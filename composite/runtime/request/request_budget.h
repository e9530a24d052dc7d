// How soon another kernel of an op is asked for.
//
// An attribute may have any number of values: a rate that a schedule passes, a number of steps. A
// kernel for each would keep the compiler busy for ever, for calls that do not come again. So the
// first kernels of an op are asked for at once, and each further step of them by twice as many
// calls: n calls get kFree + kStep * log2(n) kernels at most, and what is called often has its own.
#ifndef COMPOSITE_RUNTIME_REQUEST_REQUEST_BUDGET_H_
#define COMPOSITE_RUNTIME_REQUEST_REQUEST_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace composite {

// Of one op or one region, shared by its groups. The table's mutex guards whatever changes it.
class RequestBudget {
 public:
  static constexpr int64_t kFree = 64;
  static constexpr int64_t kStep = 16;

  // The calls that one group makes without a kernel before it gets another.
  int64_t calls_needed() const { return needed_.load(std::memory_order_relaxed); }
  // The kernels that were asked for.
  int64_t asked() const { return asked_; }
  void NoteRequest() {
    ++asked_;
    const int64_t steps = asked_ < kFree ? 0 : (asked_ - kFree) / kStep + 1;
    needed_.store(int64_t{1} << std::min<int64_t>(steps, 62), std::memory_order_relaxed);
  }

  // When the compiler last took a request of this op, by a clock that counts requests.
  int64_t last_served() const { return last_served_; }
  void NoteServed(int64_t now) { last_served_ = now; }

 private:
  std::atomic<int64_t> needed_{1};
  int64_t asked_ = 0;
  int64_t last_served_ = 0;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REQUEST_REQUEST_BUDGET_H_
