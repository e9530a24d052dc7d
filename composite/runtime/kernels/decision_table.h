// Where a kernel was measured to be no slower than its expansion: a few sizes of its class, and the
// verdict that follows for any other.
#ifndef COMPOSITE_RUNTIME_KERNELS_DECISION_TABLE_H_
#define COMPOSITE_RUNTIME_KERNELS_DECISION_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// The size of a call is the product of its symbols' values, such as the rows of a batch; 1 for a
// class without symbols.
int64_t SizeOf(absl::Span<const int64_t> symbols);

struct Measured {
  int64_t size;
  float kernel_us;
  float expansion_us;
  // Not always what the two times say: a close result has the verdict of its neighbour, or the one
  // that it had before.
  bool kernel_wins;
};

// Immutable. Without points the kernel wins everywhere.
class DecisionTable {
 public:
  DecisionTable() = default;
  // The attributes _sizes list(i), ascending, _kernel_times and _expansion_times list(f) in
  // microseconds, _kernel_wins list(b), equally long. InvalidArgument names what is malformed.
  static absl::StatusOr<DecisionTable> Parse(const tensorflow::NodeDef& record);

  // A hot path. Between two sizes of different verdicts the geometric mean divides; beyond the
  // outermost ones theirs holds.
  bool KernelWins(absl::Span<const int64_t> symbols) const {
    if (turns_.empty()) return first_wins_;
    const int64_t size = SizeOf(symbols);
    bool wins = first_wins_;
    for (int64_t turn : turns_) wins ^= size >= turn;
    return wins;
  }

  const std::vector<Measured>& points() const { return points_; }
  // The point that decides for a call; null without points.
  const Measured* Nearest(absl::Span<const int64_t> symbols) const;
  // The sizes from which on the verdict is the other one, ascending.
  absl::Span<const int64_t> turns() const { return turns_; }
  // The verdict below the first of them.
  bool first_wins() const { return first_wins_; }

 private:
  std::vector<Measured> points_;
  absl::InlinedVector<int64_t, 4> turns_;
  bool first_wins_ = true;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_DECISION_TABLE_H_
