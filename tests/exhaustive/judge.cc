// Judges float32 results of an elementary function against float64: how many units in the last
// place they are off, whether they leave the function's range, and how far they step back where
// the function does not.
//
// The unit is that of the exact value: the distance of the float32 numbers around it. Infinity
// counts as 2^128, the first number that float32 does not have.
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <xmmintrin.h>

#include <algorithm>

// Vectors go through libmvec's functions, which are within 4 units in the last place of float64.
#define VECTORS(name) extern "C" __attribute__((simd("notinbranch"))) double name(double) noexcept
VECTORS(atan);
VECTORS(erf);
VECTORS(erfc);
VECTORS(exp);
VECTORS(expm1);
VECTORS(log);
VECTORS(log1p);
VECTORS(tan);
VECTORS(tanh);

namespace {

struct Function {
  const char* name;
  void (*evaluate)(const float* x, double* y, int64_t count);
};

template <class Formula>
void Each(const float* x, double* y, int64_t count, const Formula& formula) {
  for (int64_t i = 0; i < count; ++i) y[i] = formula((double)x[i]);
}

#define FUNCTION(name, ...)                                  \
  {name, [](const float* values, double* y, int64_t count) { \
     Each(values, y, count, [](double x) { __VA_ARGS__; });  \
   }}

// What is beyond is infinite in float32, or zero; libmvec is slow where it is so in float64.
inline double Exp(double x) {
  const double below = x > 150 ? 150 : x;
  return exp(below < -150 ? -150 : below);
}

// Of libmvec's functions of angles the tangent alone is fast for all numbers.
inline double Sin(double x) {
  const double half = tan(x / 2);
  return 2 * half / (1 + half * half);
}

const Function kFunctions[] = {
    FUNCTION("exp", return Exp(x)),
    FUNCTION("exp_of_difference", return Exp(x)),
    FUNCTION("exp_of_minus_size", return Exp(-fabs(x))),
    FUNCTION("exp_of_minus_square", return Exp(-x * x)),
    FUNCTION("expm1", return expm1(x)),
    FUNCTION("log", return x < 0 ? NAN : log(fabs(x))),
    FUNCTION("log1p", return log1p(x)),
    FUNCTION("tanh", return tanh(x)),
    FUNCTION("sigmoid", return 1 / (1 + Exp(-x))),
    FUNCTION("softplus", return (x > 0 ? x : 0) + log1p(Exp(-fabs(x)))),
    FUNCTION("tanh_of_softplus",
             {
               const double n = Exp(x > 40 ? 40 : x), over = n * (n + 2);
               return over / (over + 2);
             }),
    FUNCTION("erf", return erf(x)),
    FUNCTION("erfc", return erfc(x)),
    FUNCTION("rsqrt", return 1 / sqrt(x)),
    FUNCTION("sin", return Sin(x)),
    FUNCTION("cos", return x == 0 ? 1 : Sin(x) / tan(x)),
    FUNCTION("tan", return tan(x)),
    FUNCTION("atan", return atan(x)),
};

template <class To, class From>
To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// One over the unit in the last place of float32 at |y|, which is at most 2^128.
inline double InverseUnit(double y) {
  int64_t exponent = (Bits<int64_t>(y) >> 52 & 0x7FF) - 1023;
  exponent = exponent > 127 ? 127 : exponent;
  exponent = exponent < -126 ? -126 : exponent;
  return Bits<double>((1023 + 23 - exponent) << 52);
}

inline double Within(double y) {
  const double below = y > 0x1p128 ? 0x1p128 : y;
  return below < -0x1p128 ? -0x1p128 : below;
}

// The bits of the error, which have its order; those of NaN, above all others, if one of the two is
// no number.
inline int64_t ErrorBits(double exact, double result) {
  const double y = Within(exact);
  const int64_t error = Bits<int64_t>(fabs(Within(result) - y) * InverseUnit(y));
  const int64_t other = exact != exact ? Bits<int64_t>(result != result ? 0.0 : NAN) : error;
  return (result == 0 ? fabs(y) : INFINITY) < 0x1p-126 ? 0 : other;
}

// The numbers of float32 in their order, zero once.
inline int64_t Place(float x) {
  const int32_t bits = Bits<int32_t>(x);
  return bits < 0 ? -(int64_t)(bits & 0x7FFFFFFF) : bits;
}

constexpr int64_t kPiece = 1024;

}  // namespace

extern "C" {

struct Verdict {
  double error;    // the largest
  float error_at;  // the input
  float outside_at;
  int64_t outside;  // results that are outside of the range
  int64_t signs;    // zeros of the other sign than the exact zero
};

struct Steps {
  int64_t count;  // steps back
  int64_t most;   // the largest, in numbers of float32
  int64_t at;     // where: the index of the first of two results
};

// Returns whether there is such a function.
bool Evaluate(const char* name, const float* x, double* y, int64_t count) {
  for (const Function& function : kFunctions)
    if (strcmp(function.name, name) == 0) {
      function.evaluate(x, y, count);
      return true;
    }
  return false;
}

void Judge(const float* x, const double* exact, const float* results, int64_t count, double low,
           double high, Verdict* verdict) {
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t end = std::min(count, begin + kPiece);
    int64_t raw = 0, outside = 0, signs = 0;  // what is not negative has the order of its bits
    for (int64_t i = begin; i < end; ++i) {
      const double y = exact[i], result = results[i];
      const int64_t error = ErrorBits(y, result);
      raw = error > raw ? error : raw;
      outside += result < low ? 1 : result > high ? 1 : 0;
      const int64_t sign = Bits<int64_t>(y) ^ Bits<int64_t>(result);
      signs += fabs(y) + fabs(result) == 0 ? sign < 0 ? 1 : 0 : 0;
    }
    const double found = Bits<double>(raw), most = found == found ? found : INFINITY;
    if (most > verdict->error)
      for (int64_t i = begin; i < end; ++i)
        if (ErrorBits(exact[i], results[i]) == raw) verdict->error_at = x[i];
    verdict->error = std::max(verdict->error, most);
    if (outside > 0 && verdict->outside == 0)
      for (int64_t i = begin; i < end; ++i)
        if (results[i] < low || results[i] > high) verdict->outside_at = x[i];
    verdict->outside += outside;
    verdict->signs += signs;
  }
}

// Looks at results of neighbouring inputs, in the order of their bits, of a function that rises
// (1) or falls (-1) with them.
void LookBack(const float* results, int64_t count, int direction, Steps* steps) {
  for (int64_t begin = 0; begin + 1 < count; begin += kPiece) {
    const int64_t end = std::min(count - 1, begin + kPiece);
    int64_t most = 0, back = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t step = (Place(results[i]) - Place(results[i + 1])) * direction;
      most = step > most ? step : most;
      back += step > 0;
    }
    if (most > steps->most)
      for (int64_t i = begin; i < end; ++i)
        if ((Place(results[i]) - Place(results[i + 1])) * direction == most) steps->at = i;
    steps->most = std::max(steps->most, most);
    steps->count += back;
  }
}

// Has this thread take denormals for zeros, or not; returns what it did before.
bool SetFlushes(bool flushes) {
  constexpr unsigned kFlushes = 0x8040;  // flush to zero, denormals are zeros
  const unsigned before = _mm_getcsr();
  _mm_setcsr(flushes ? before | kFlushes : before & ~kFlushes);
  return (before & kFlushes) == kFlushes;
}

}  // extern "C"
