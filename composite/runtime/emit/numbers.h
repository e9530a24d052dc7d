// Python's functions of numbers and of lists of them: float(), int(), round(), abs(), divmod(),
// pow(), min(), max(), sum(), any(), all(), sorted(), isinstance(). On numbers that are known they
// are computed, on numbers that are known later they become nodes or wait.
#ifndef COMPOSITE_RUNTIME_EMIT_NUMBERS_H_
#define COMPOSITE_RUNTIME_EMIT_NUMBERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"

namespace composite {

using BuiltinFn = absl::StatusOr<Value> (*)(const std::vector<Value>&, Emitter*);

struct BuiltinRule {
  BuiltinFn function;
  size_t least;  // arguments
  size_t most;
  bool of_items = false;  // the first argument is given as the list of its items
};

// Null for another name. sorted() takes its items and `reverse`; min() and max() their items and
// a default; isinstance() its value and the names of types.
const BuiltinRule* FindNumberRule(absl::string_view name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_NUMBERS_H_
