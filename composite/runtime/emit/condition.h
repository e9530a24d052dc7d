// What decides an `if`, a `while` or an `and`: Python's truth of a value.
#ifndef COMPOSITE_RUNTIME_EMIT_CONDITION_H_
#define COMPOSITE_RUNTIME_EMIT_CONDITION_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"

namespace composite {

struct Condition {
  absl::optional<bool> known;
  TensorValue tensor;  // a bool scalar, when it is known only at run time
};

// As bool(value): of a tensor, which has one element, emitted. NotYet names the fact that is
// missing where a dim decides: with the dim there may be one branch only.
absl::StatusOr<Condition> Decide(const Value& value, Emitter* emitter);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_CONDITION_H_
