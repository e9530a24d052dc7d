// Python's operators on any values: folded when both are known (fold.h), TensorFlow ops on tensors.
// One table, so that a line means the same in both cases.
#ifndef COMPOSITE_RUNTIME_EMIT_OPERATORS_H_
#define COMPOSITE_RUNTIME_EMIT_OPERATORS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"

namespace composite {

// `name` as in a program: "add", "lt", "neg", ... InvalidArgument for an unknown one, and for
// operands that Python or TensorFlow refuse.
absl::StatusOr<Value> Unary(absl::string_view name, const Value& a, Emitter* emitter);
absl::StatusOr<Value> Binary(absl::string_view name, const Value& a, const Value& b,
                             Emitter* emitter);

// Whether a program may use this operator.
bool IsUnaryOperator(absl::string_view name);
bool IsBinaryOperator(absl::string_view name);

// The TF op of an operator on numbers; "" where there is none.
absl::string_view TfOpOf(absl::string_view binary);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_OPERATORS_H_
