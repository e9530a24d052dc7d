// Python's str(), repr() and ascii() of values that are known now. No tensors here.
#ifndef COMPOSITE_RUNTIME_VALUE_TEXT_OF_H_
#define COMPOSITE_RUNTIME_VALUE_TEXT_OF_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/value/value.h"

namespace composite {

// A finite number as 0.d1d2... x 10^point, of these digits, with d1 > 0 but for zero: "0".
struct WrittenDigits {
  std::string digits;
  int point = 0;
};

// As C's printf writes a finite number by the types e and f, with the point of the C locale.
std::string Printed(double number, int precision, char type);

// The fewest digits that are read as this number again.
WrittenDigits ShortestDecimal(double magnitude);
// So many digits, correctly rounded.
WrittenDigits RoundedDecimal(double magnitude, int digits);

// How a float is written out: `limit` digits at most are in front of a point, or else it has an
// exponent. A whole number ends in ".0" if `whole`.
std::string WriteDecimal(const WrittenDigits& decimal, int limit, bool whole);

// InvalidArgument for what has no text: functions, ranges, and in Repr characters beyond ASCII,
// some of which Python escapes.
absl::StatusOr<std::string> Str(const Value& value);
absl::StatusOr<std::string> Repr(const Value& value);
absl::StatusOr<std::string> Ascii(const Value& value);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VALUE_TEXT_OF_H_
