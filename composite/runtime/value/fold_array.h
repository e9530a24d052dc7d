// Arithmetic between constant arrays of a program and numbers, as NumPy does it: the result is an
// array still, which adopts the dtype of the tensor that it meets.
#ifndef COMPOSITE_RUNTIME_VALUE_FOLD_ARRAY_H_
#define COMPOSITE_RUNTIME_VALUE_FOLD_ARRAY_H_

#include "absl/status/statusor.h"
#include "composite/runtime/value/value.h"

namespace composite {

using FoldBinaryFn = absl::StatusOr<Value> (*)(const Value&, const Value&);

// Whether FoldArrays has an answer: one operand is an array, the other a number or an array of the
// same dtype and shape, of real dtypes.
bool CanFoldArrays(const Value& a, const Value& b);

// `fold` on the elements. The dtype is the array's; double for an int array beside a float or under
// a true division; bool where `fold` gives bools.
absl::StatusOr<Value> FoldArrays(FoldBinaryFn fold, const Value& a, const Value& b);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VALUE_FOLD_ARRAY_H_
