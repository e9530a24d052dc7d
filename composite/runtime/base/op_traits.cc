#include "composite/runtime/base/op_traits.h"

#include <algorithm>
#include <iterator>

namespace composite {
namespace {

// Sorted by name.
constexpr OpTraits kTable[] = {
#include "op_traits_table.inc"
};
constexpr OpTraits kUnknownOp = {};

}  // namespace

const OpTraits& TraitsOf(absl::string_view op) {
  const OpTraits* row =
      std::lower_bound(std::begin(kTable), std::end(kTable), op,
                       [](const OpTraits& row, absl::string_view op) { return row.name < op; });
  return row != std::end(kTable) && row->name == op ? *row : kUnknownOp;
}

}  // namespace composite
