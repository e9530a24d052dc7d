// Arithmetic of dims in postfix expressions: Python's, on 64 bits.
#ifndef COMPOSITE_RUNTIME_BASE_DIM_ARITHMETIC_H_
#define COMPOSITE_RUNTIME_BASE_DIM_ARITHMETIC_H_

#include <cstdint>

namespace composite {

// Python's // and %. False: by zero, or by -1, which INT64_MIN overflows and no shape needs.
inline bool FloorDivide(int64_t a, int64_t b, int64_t* quotient, int64_t* rest) {
  if (b == 0 || b == -1) return false;
  *quotient = a / b;
  *rest = a % b;
  if (*rest != 0 && (*rest < 0) != (b < 0)) {
    *quotient -= 1;
    *rest += b;
  }
  return true;
}

// `op` is one of + - * / %. False when there is no result.
inline bool ApplyToDims(char op, int64_t a, int64_t b, int64_t* result) {
  int64_t unused;
  switch (op) {
    case '+':
      return !__builtin_add_overflow(a, b, result);
    case '-':
      return !__builtin_sub_overflow(a, b, result);
    case '*':
      return !__builtin_mul_overflow(a, b, result);
    case '/':
      return FloorDivide(a, b, result, &unused);
    default:
      return FloorDivide(a, b, &unused, result);
  }
}

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_BASE_DIM_ARITHMETIC_H_
