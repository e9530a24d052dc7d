#include "composite/runtime/value/fold_number.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/value/fold.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

absl::Status NotANumber(const char* function, const Value& value) {
  return absl::InvalidArgumentError(
      absl::StrCat(function, "() takes a number, got ", Describe(value)));
}

absl::Status TooLarge(const char* function, const Value& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("integer overflow: ", function, "() of ", Describe(value),
                   " does not fit 64 bits, which is what attributes and shapes have"));
}

// A float without a fraction as an int.
absl::StatusOr<Value> Whole(const char* function, double number) {
  if (std::isnan(number)) {
    return absl::InvalidArgumentError("cannot convert float NaN to integer");
  }
  if (std::isinf(number)) {
    return absl::InvalidArgumentError("cannot convert float infinity to integer");
  }
  constexpr double kLimit = 9223372036854775808.0;  // 2**63
  if (number < -kLimit || number >= kLimit) return TooLarge(function, Value::Float(number));
  return Value::Int(static_cast<int64_t>(number));
}

// Digits before and after the point, all of them: a double has 1074 after it at most.
struct Decimal {
  std::string digits;
  int64_t point;
};

Decimal Expanded(double number) {
  char text[1500];
  std::snprintf(text, sizeof(text), "%.1074f", number);
  std::string digits = absl::StrCat("0", text);  // room for a carry
  const size_t point = digits.find('.');
  digits.erase(point, 1);
  return {std::move(digits), static_cast<int64_t>(point)};
}

// The nearest decimal with so many digits after the point, half to even, then the nearest double.
absl::StatusOr<Value> RoundFloat(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 1074) return Value::Float(number);
  Decimal decimal = Expanded(std::fabs(number));
  const int64_t kept = decimal.point + digits;
  if (kept < 1) return Value::Float(std::copysign(0.0, number));
  std::string& all = decimal.digits;
  const int64_t size = static_cast<int64_t>(all.size());
  if (kept < size) {
    const bool half = all[kept] == '5' && all.find_first_not_of('0', kept + 1) == std::string::npos;
    const bool odd = (all[kept - 1] - '0') % 2 == 1;
    const bool up = half ? odd : all[kept] >= '5';
    std::fill(all.begin() + kept, all.end(), '0');
    for (int64_t i = kept - 1; up && i >= 0; --i) {
      all[i] = all[i] == '9' ? '0' : static_cast<char>(all[i] + 1);
      if (all[i] != '0') break;
    }
  }
  all.insert(decimal.point, ".");
  const double rounded = std::strtod(all.c_str(), nullptr);
  if (std::isinf(rounded)) {
    return absl::InvalidArgumentError("rounded value too large to represent");
  }
  return Value::Float(std::copysign(rounded, number));
}

absl::StatusOr<Value> RoundInt(int64_t number, int64_t digits) {
  if (digits >= 0) return Value::Int(number);
  if (digits < -19) return Value::Int(0);
  absl::int128 unit = 1;
  for (int64_t i = 0; i < -digits; ++i) unit *= 10;
  absl::int128 count = number / unit, rest = number % unit;
  if (rest < 0) {
    rest += unit;
    count -= 1;
  }
  if (rest * 2 > unit || (rest * 2 == unit && count % 2 != 0)) count += 1;
  const absl::int128 rounded = count * unit;
  const int64_t result = static_cast<int64_t>(rounded);
  if (result != rounded) return TooLarge("round", Value::Int(number));
  return Value::Int(result);
}

}  // namespace

absl::StatusOr<Value> FoldFloat(const Value& number) {
  int64_t i = 0;
  if (number.as_float() != nullptr) return number;
  if (GetInt(number, &i)) return Value::Float(static_cast<double>(i));
  return NotANumber("float", number);
}

absl::StatusOr<Value> FoldInt(const Value& number) {
  int64_t i = 0;
  if (GetInt(number, &i)) return Value::Int(i);
  if (number.as_float() != nullptr) return Whole("int", std::trunc(*number.as_float()));
  return NotANumber("int", number);
}

absl::StatusOr<Value> FoldRound(const Value& number, const Value& digits) {
  int64_t i = 0, count = 0;
  if (!digits.is_none() && !GetInt(digits, &count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the digits of round() are an integer, got ", Describe(digits)));
  }
  if (GetInt(number, &i)) return RoundInt(i, count);
  if (number.as_float() == nullptr) return NotANumber("round", number);
  if (!digits.is_none()) return RoundFloat(*number.as_float(), count);
  return Whole("round", std::nearbyint(*number.as_float()));
}

absl::StatusOr<Value> FoldAbs(const Value& number) {
  int64_t i = 0;
  if (number.as_float() != nullptr) return Value::Float(std::fabs(*number.as_float()));
  if (!GetInt(number, &i)) return NotANumber("abs", number);
  return i < 0 ? FoldNeg(number) : Value::Int(i);
}

absl::StatusOr<Value> FoldPowMod(const Value& base, const Value& exponent, const Value& modulus) {
  int64_t b = 0, e = 0, m = 0;
  if (!GetInt(base, &b) || !GetInt(exponent, &e) || !GetInt(modulus, &m)) {
    return absl::InvalidArgumentError("pow() with three arguments takes integers");
  }
  if (m == 0) return absl::InvalidArgumentError("pow() with a modulus of 0");
  if (e < 0) {
    return absl::InvalidArgumentError(
        "pow() with a modulus takes an exponent that is not negative");
  }
  absl::int128 result = 1 % absl::int128(m), square = absl::int128(b) % m;
  for (; e > 0; e >>= 1) {
    if ((e & 1) != 0) result = result * square % m;
    square = square * square % m;
  }
  if (result != 0 && (result < 0) != (m < 0)) result += m;  // of the sign of the modulus
  return Value::Int(static_cast<int64_t>(result));
}

}  // namespace composite
