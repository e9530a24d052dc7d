#include "composite/runtime/kernels/decision_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/record_tables.h"

namespace composite {
namespace {

using ListValue = tensorflow::AttrValue::ListValue;

constexpr int kMostPoints = 64;  // a handful is measured; what has more is damaged

const ListValue& ListOf(const tensorflow::NodeDef& record, const std::string& attr) {
  auto it = record.attr().find(attr);
  return it == record.attr().end() ? ListValue::default_instance() : it->second.list();
}

// The first size that is nearer to b than to a, as a ratio.
int64_t Between(int64_t a, int64_t b) {
  const double mean = std::sqrt(static_cast<double>(a)) * std::sqrt(static_cast<double>(b));
  return std::max(a + 1, std::min(b, static_cast<int64_t>(mean) + 1));
}

}  // namespace

int64_t SizeOf(absl::Span<const int64_t> symbols) {
  int64_t size = 1;
  for (int64_t value : symbols) {
    if (__builtin_mul_overflow(size, value, &size)) return std::numeric_limits<int64_t>::max();
  }
  return size;
}

absl::StatusOr<DecisionTable> DecisionTable::Parse(const tensorflow::NodeDef& record) {
  const ListValue& sizes = ListOf(record, kSizesField);
  const ListValue& kernel = ListOf(record, kKernelTimesField);
  const ListValue& expansion = ListOf(record, kExpansionTimesField);
  const ListValue& wins = ListOf(record, kKernelWinsField);
  const int count = sizes.i_size();
  if (kernel.f_size() != count || expansion.f_size() != count || wins.b_size() != count ||
      count > kMostPoints) {
    return absl::InvalidArgumentError(
        absl::StrCat("_sizes: ", count, " of them, with ", kernel.f_size(), " _kernel_times, ",
                     expansion.f_size(), " _expansion_times and ", wins.b_size(), " _kernel_wins"));
  }
  DecisionTable table;
  for (int i = 0; i < count; ++i) {
    if (sizes.i(i) < 1 || (i > 0 && sizes.i(i) <= sizes.i(i - 1))) {
      return absl::InvalidArgumentError("_sizes: they are positive and ascend");
    }
    table.points_.push_back({sizes.i(i), kernel.f(i), expansion.f(i), wins.b(i)});
    if (i == 0) {
      table.first_wins_ = wins.b(0);
    } else if (wins.b(i) != wins.b(i - 1)) {
      table.turns_.push_back(Between(sizes.i(i - 1), sizes.i(i)));
    }
  }
  return table;
}

const Measured* DecisionTable::Nearest(absl::Span<const int64_t> symbols) const {
  const int64_t size = SizeOf(symbols);
  const Measured* nearest = points_.empty() ? nullptr : &points_.front();
  for (size_t i = 1; i < points_.size(); ++i) {
    if (size >= Between(points_[i - 1].size, points_[i].size)) nearest = &points_[i];
  }
  return nearest;
}

}  // namespace composite
