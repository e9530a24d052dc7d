// Python's operators on values that are known now, with Python's results: signed, floor division
// and its remainder, true division of ints, comparison of ints with floats. What does not fit 64
// bits is an error. No tensors here: see operators.h.
#ifndef COMPOSITE_RUNTIME_VALUE_FOLD_H_
#define COMPOSITE_RUNTIME_VALUE_FOLD_H_

#include "absl/status/statusor.h"
#include "composite/runtime/value/value.h"

namespace composite {

// InvalidArgument for operands that Python refuses, division by zero, and overflow.
absl::StatusOr<Value> FoldNeg(const Value& a);
absl::StatusOr<Value> FoldPos(const Value& a);
absl::StatusOr<Value> FoldNot(const Value& a);
absl::StatusOr<Value> FoldInvert(const Value& a);

absl::StatusOr<Value> FoldAdd(const Value& a, const Value& b);
absl::StatusOr<Value> FoldSub(const Value& a, const Value& b);
absl::StatusOr<Value> FoldMul(const Value& a, const Value& b);
absl::StatusOr<Value> FoldTrueDiv(const Value& a, const Value& b);
absl::StatusOr<Value> FoldFloorDiv(const Value& a, const Value& b);
absl::StatusOr<Value> FoldMod(const Value& a, const Value& b);
absl::StatusOr<Value> FoldPow(const Value& a, const Value& b);
absl::StatusOr<Value> FoldAnd(const Value& a, const Value& b);
absl::StatusOr<Value> FoldOr(const Value& a, const Value& b);
absl::StatusOr<Value> FoldXor(const Value& a, const Value& b);
absl::StatusOr<Value> FoldLeftShift(const Value& a, const Value& b);
absl::StatusOr<Value> FoldRightShift(const Value& a, const Value& b);

absl::StatusOr<Value> FoldEqual(const Value& a, const Value& b);
absl::StatusOr<Value> FoldNotEqual(const Value& a, const Value& b);
absl::StatusOr<Value> FoldLess(const Value& a, const Value& b);
absl::StatusOr<Value> FoldLessEqual(const Value& a, const Value& b);
absl::StatusOr<Value> FoldGreater(const Value& a, const Value& b);
absl::StatusOr<Value> FoldGreaterEqual(const Value& a, const Value& b);
absl::StatusOr<Value> FoldIn(const Value& a, const Value& b);
absl::StatusOr<Value> FoldNotIn(const Value& a, const Value& b);
// `is` between values: the same for None, True, False and dtypes; an error for numbers and strings,
// whose identity is an accident in Python.
absl::StatusOr<Value> FoldIs(const Value& a, const Value& b);
absl::StatusOr<Value> FoldIsNot(const Value& a, const Value& b);

// The error of a binary operator that Python does not define for these operands.
absl::Status UnsupportedOperands(const char* symbol, const Value& a, const Value& b);

// bool(value). A tensor has none here.
absl::StatusOr<bool> Truth(const Value& value);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VALUE_FOLD_H_
