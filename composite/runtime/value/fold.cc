#include "composite/runtime/value/fold.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

absl::Status Overflow(const char* symbol, const Value& a, const Value& b) {
  return absl::InvalidArgumentError(
      absl::StrCat("integer overflow: ", Describe(a), " ", symbol, " ", Describe(b),
                   " does not fit 64 bits, which is what attributes and shapes have"));
}

bool GetFloat(const Value& value, double* out) {
  int64_t i = 0;
  if (value.as_float() != nullptr) {
    *out = *value.as_float();
  } else if (GetInt(value, &i)) {
    *out = static_cast<double>(i);
  } else {
    return false;
  }
  return true;
}

int64_t Bits(absl::uint128 number) {
  int64_t bits = 0;
  for (; number != 0; number >>= 1) ++bits;
  return bits;
}

// The double nearest to x / y, as Python has it: of more bits than a double keeps, the last one
// says whether there is a remainder, so that the quotient is rounded once.
double Quotient(int64_t x, int64_t y) {
  const bool negative = (x < 0) != (y < 0);
  const absl::uint128 divisor = y < 0 ? 0 - static_cast<uint64_t>(y) : static_cast<uint64_t>(y);
  absl::uint128 dividend = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  const int64_t shift = std::max<int64_t>(0, 56 + Bits(divisor) - Bits(dividend));
  dividend <<= static_cast<int>(shift);
  uint64_t quotient = static_cast<uint64_t>(dividend / divisor);
  if (dividend % divisor != 0) quotient |= 1;
  const double rounded = std::ldexp(static_cast<double>(quotient), -static_cast<int>(shift));
  return negative ? -rounded : rounded;
}

using IntFunction = bool (*)(int64_t, int64_t, int64_t*);  // true when the result does not fit
using FloatFunction = double (*)(double, double);

absl::StatusOr<Value> Arithmetic(const char* symbol, const Value& a, const Value& b, IntFunction f,
                                 FloatFunction g) {
  int64_t x = 0, y = 0, z = 0;
  if (GetInt(a, &x) && GetInt(b, &y)) {
    if (f(x, y, &z)) return Overflow(symbol, a, b);
    return Value::Int(z);
  }
  double u = 0, v = 0;
  if (g == nullptr || !GetFloat(a, &u) || !GetFloat(b, &v)) {
    return UnsupportedOperands(symbol, a, b);
  }
  return Value::Float(g(u, v));
}

absl::Status CheckDivisor(const Value& b) {
  double divisor = 0;
  if (GetFloat(b, &divisor) && divisor == 0) {
    return absl::InvalidArgumentError("division by zero");
  }
  return absl::OkStatus();
}

bool FloorDivide(int64_t x, int64_t y, int64_t* z) {
  if (x == std::numeric_limits<int64_t>::min() && y == -1) return true;
  *z = x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
  return false;
}

bool FloorModulo(int64_t x, int64_t y, int64_t* z) {
  if (y == -1) {
    *z = 0;  // x % -1 traps for the least int
    return false;
  }
  *z = x % y;
  if (*z != 0 && (*z < 0) != (y < 0)) *z += y;
  return false;
}

// The two halves of CPython's float_divmod.
double FloorModulo(double x, double y) {
  double mod = std::fmod(x, y);
  if (mod == 0) return std::copysign(0.0, y);
  return (y < 0) != (mod < 0) ? mod + y : mod;
}

double FloorDivide(double x, double y) {
  double mod = std::fmod(x, y);
  double div = (x - mod) / y;
  if (mod != 0 && (y < 0) != (mod < 0)) div -= 1;
  if (div == 0) return std::copysign(0.0, x / y);
  const double floor = std::floor(div);
  return div - floor > 0.5 ? floor + 1 : floor;
}

bool IntegerPower(int64_t base, int64_t exponent, int64_t* out) {
  *out = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(*out, base, out)) return true;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return true;
  }
  return false;
}

// A loop that doubles a list or a text must not take all memory.
constexpr int64_t kMostItems = 1 << 20;

absl::Status CheckDims(const Value& sequence) {
  for (const Value& dim : *sequence.as_list()) {
    if (!dim.as_float() && !dim.as_string() && !dim.as_list() && !dim.as_type()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a dim of a shape is an integer or None, got ", Describe(dim)));
  }
  return absl::OkStatus();
}

// Of a + b: both are of one kind, or one is a shape, which takes any other as more dims.
absl::StatusOr<SequenceKind> SumKind(const Value& a, const Value& b) {
  if (a.kind() == SequenceKind::kShape || b.kind() == SequenceKind::kShape) {
    return SequenceKind::kShape;
  }
  if (a.kind() == b.kind() && a.kind() != SequenceKind::kRange) return a.kind();
  if (a.kind() == SequenceKind::kRange) return UnsupportedOperands("+", a, b);
  return absl::InvalidArgumentError(absl::StrCat("can only concatenate ", TypeName(a), " (not \"",
                                                 TypeName(b), "\") to ", TypeName(a), ": write ",
                                                 TypeName(a), "(...) around it"));
}

absl::StatusOr<Value> Concatenated(const Value& a, const Value& b) {
  const bool lists = a.as_list() != nullptr;
  SequenceKind kind = SequenceKind::kList;
  if (lists) {
    TF_ASSIGN_OR_RETURN(kind, SumKind(a, b));
    for (const Value* side : {&a, &b}) {
      if (kind == SequenceKind::kShape) TF_RETURN_IF_ERROR(CheckDims(*side));
    }
  }
  const int64_t size = lists ? a.as_list()->size() + b.as_list()->size()
                             : a.as_string()->size() + b.as_string()->size();
  if (size > kMostItems) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", TypeName(a), " of ", size, " items is too long"));
  }
  if (!lists) return Value::String(*a.as_string() + *b.as_string());
  Value::List all = *a.as_list();
  all.insert(all.end(), b.as_list()->begin(), b.as_list()->end());
  return Value::MakeList(std::move(all), kind);
}

bool Repeats(const Value& value) {
  if (value.as_string() != nullptr) return true;
  return value.as_list() != nullptr &&
         (value.kind() == SequenceKind::kList || value.kind() == SequenceKind::kTuple);
}

absl::StatusOr<Value> Bitwise(const char* symbol, const Value& a, const Value& b, IntFunction f) {
  if (a.as_bool() != nullptr && b.as_bool() != nullptr) {
    int64_t z = 0;
    f(*a.as_bool(), *b.as_bool(), &z);
    return Value::Bool(z != 0);
  }
  return Arithmetic(symbol, a, b, f, nullptr);
}

// list * int, tuple * int and str * int, as far as a program can mean it.
absl::StatusOr<Value> Repeated(const Value& a, int64_t count) {
  const int64_t size = a.as_list() ? a.as_list()->size() : a.as_string()->size();
  if (count > 0 && size > kMostItems / count) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", TypeName(a), " of ", size, " items times ", count, " is too long"));
  }
  if (a.as_string() != nullptr) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += *a.as_string();
    return Value::String(std::move(text));
  }
  Value::List all;
  for (int64_t i = 0; i < count; ++i) {
    all.insert(all.end(), a.as_list()->begin(), a.as_list()->end());
  }
  return Value::MakeList(std::move(all), a.kind());
}

}  // namespace

absl::Status UnsupportedOperands(const char* symbol, const Value& a, const Value& b) {
  return absl::InvalidArgumentError(absl::StrCat("unsupported operand types for ", symbol, ": ",
                                                 TypeName(a), " and ", TypeName(b)));
}

absl::StatusOr<Value> FoldNeg(const Value& a) {
  int64_t i = 0;
  if (GetInt(a, &i)) {
    if (i == std::numeric_limits<int64_t>::min()) return Overflow("-", Value::Int(0), a);
    return Value::Int(-i);
  }
  if (a.as_float() != nullptr) return Value::Float(-*a.as_float());
  return absl::InvalidArgumentError(absl::StrCat("bad operand type for unary -: ", TypeName(a)));
}

absl::StatusOr<Value> FoldPos(const Value& a) {
  int64_t i = 0;
  if (GetInt(a, &i)) return Value::Int(i);
  if (a.as_float() != nullptr) return a;
  return absl::InvalidArgumentError(absl::StrCat("bad operand type for unary +: ", TypeName(a)));
}

absl::StatusOr<Value> FoldNot(const Value& a) {
  TF_ASSIGN_OR_RETURN(bool truth, Truth(a));
  return Value::Bool(!truth);
}

absl::StatusOr<Value> FoldInvert(const Value& a) {
  int64_t i = 0;
  if (GetInt(a, &i)) return Value::Int(~i);
  return absl::InvalidArgumentError(absl::StrCat("bad operand type for unary ~: ", TypeName(a)));
}

absl::StatusOr<Value> FoldAdd(const Value& a, const Value& b) {
  if (a.as_string() && b.as_string()) return Concatenated(a, b);
  if (a.as_list() && b.as_list()) return Concatenated(a, b);
  return Arithmetic(
      "+", a, b, [](int64_t x, int64_t y, int64_t* z) { return __builtin_add_overflow(x, y, z); },
      [](double x, double y) { return x + y; });
}

absl::StatusOr<Value> FoldSub(const Value& a, const Value& b) {
  return Arithmetic(
      "-", a, b, [](int64_t x, int64_t y, int64_t* z) { return __builtin_sub_overflow(x, y, z); },
      [](double x, double y) { return x - y; });
}

absl::StatusOr<Value> FoldMul(const Value& a, const Value& b) {
  int64_t count = 0;
  if (Repeats(a) && GetInt(b, &count)) return Repeated(a, count);
  if (Repeats(b) && GetInt(a, &count)) return Repeated(b, count);
  return Arithmetic(
      "*", a, b, [](int64_t x, int64_t y, int64_t* z) { return __builtin_mul_overflow(x, y, z); },
      [](double x, double y) { return x * y; });
}

absl::StatusOr<Value> FoldTrueDiv(const Value& a, const Value& b) {
  TF_RETURN_IF_ERROR(CheckDivisor(b));
  double u = 0, v = 0;
  if (!GetFloat(a, &u) || !GetFloat(b, &v)) return UnsupportedOperands("/", a, b);
  int64_t x = 0, y = 0;
  if (GetInt(a, &x) && GetInt(b, &y)) {
    return Value::Float(Quotient(x, y));
  }
  return Value::Float(u / v);
}

absl::StatusOr<Value> FoldFloorDiv(const Value& a, const Value& b) {
  TF_RETURN_IF_ERROR(CheckDivisor(b));
  return Arithmetic("//", a, b, &FloorDivide, &FloorDivide);
}

absl::StatusOr<Value> FoldMod(const Value& a, const Value& b) {
  if (a.as_string() != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("% formats a text that is written out alone, and this is ", Describe(a),
                     ": write an f-string"));
  }
  TF_RETURN_IF_ERROR(CheckDivisor(b));
  return Arithmetic("%", a, b, &FloorModulo, &FloorModulo);
}

absl::StatusOr<Value> FoldPow(const Value& a, const Value& b) {
  int64_t x = 0, y = 0;
  double u = 0, v = 0;
  if (!GetFloat(a, &u) || !GetFloat(b, &v)) return UnsupportedOperands("**", a, b);
  if (u == 0 && v < 0) {
    return absl::InvalidArgumentError("0.0 cannot be raised to a negative power");
  }
  if (GetInt(a, &x) && GetInt(b, &y) && y >= 0) {
    return Arithmetic("**", a, b, &IntegerPower, nullptr);
  }
  if (u < 0 && std::isfinite(v) && v != std::floor(v)) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(a), " ** ", Describe(b),
                                                   " is a complex number; attributes have none"));
  }
  return Value::Float(std::pow(u, v));
}

absl::StatusOr<Value> FoldAnd(const Value& a, const Value& b) {
  return Bitwise("&", a, b, [](int64_t x, int64_t y, int64_t* z) { return *z = x & y, false; });
}

absl::StatusOr<Value> FoldOr(const Value& a, const Value& b) {
  return Bitwise("|", a, b, [](int64_t x, int64_t y, int64_t* z) { return *z = x | y, false; });
}

absl::StatusOr<Value> FoldXor(const Value& a, const Value& b) {
  return Bitwise("^", a, b, [](int64_t x, int64_t y, int64_t* z) { return *z = x ^ y, false; });
}

absl::StatusOr<Value> FoldLeftShift(const Value& a, const Value& b) {
  int64_t x = 0, y = 0;
  if (!GetInt(a, &x) || !GetInt(b, &y)) return UnsupportedOperands("<<", a, b);
  if (y < 0) return absl::InvalidArgumentError("negative shift count");
  if (x == 0) return Value::Int(0);
  int64_t z = 0;
  if (y > 62 || __builtin_mul_overflow(x, int64_t{1} << y, &z)) return Overflow("<<", a, b);
  return Value::Int(z);
}

absl::StatusOr<Value> FoldRightShift(const Value& a, const Value& b) {
  int64_t x = 0, y = 0;
  if (!GetInt(a, &x) || !GetInt(b, &y)) return UnsupportedOperands(">>", a, b);
  if (y < 0) return absl::InvalidArgumentError("negative shift count");
  return Value::Int(x >> (y > 63 ? 63 : y));
}

}  // namespace composite
