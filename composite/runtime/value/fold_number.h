// Python's functions of numbers that are known now, with Python's results: float(), int(), round(),
// abs(), pow() with a modulus. What does not fit 64 bits is an error. No tensors here: see
// emit/numbers.h.
#ifndef COMPOSITE_RUNTIME_VALUE_FOLD_NUMBER_H_
#define COMPOSITE_RUNTIME_VALUE_FOLD_NUMBER_H_

#include "absl/status/statusor.h"
#include "composite/runtime/value/value.h"

namespace composite {

// InvalidArgument for arguments that Python refuses, for text, and for overflow.
absl::StatusOr<Value> FoldFloat(const Value& number);
// Toward zero.
absl::StatusOr<Value> FoldInt(const Value& number);
// Half to even; without digits (None) an int.
absl::StatusOr<Value> FoldRound(const Value& number, const Value& digits);
absl::StatusOr<Value> FoldAbs(const Value& number);
// pow(base, exponent, modulus) of ints; the exponent is not negative.
absl::StatusOr<Value> FoldPowMod(const Value& base, const Value& exponent, const Value& modulus);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VALUE_FOLD_NUMBER_H_
