// Elements of the ring in the place of a kernel's floats (compiler/tvm/algebra/ring.py).
//
// From here on `float` and `double` are elements. Sums and products are those of unsigned integers;
// ring_functions.h has the other functions, which are generated from the ring's own definition.
#pragma once

namespace composite_ring {

using RealFloat = float;
using RealDouble = double;

constexpr RealDouble kHuge = 0x1p120;  // from here on constants stand for infinities

template <class W>
struct Element {
  W word;

  Element() = default;
  template <class I, std::enable_if_t<std::is_integral<I>::value, int> = 0>
  Element(I value) : word(W(value)) {}
  Element(RealFloat value) : word(Constant(value)) {}
  Element(RealDouble value) : word(Constant(value)) {}
  template <class V, std::enable_if_t<!std::is_same<V, W>::value, int> = 0>
  explicit Element(Element<V> other) : word(W(other.word)) {}
  template <class I, std::enable_if_t<std::is_integral<I>::value, int> = 0>
  explicit operator I() const {
    return I(word);
  }

  static Element Of(W word) {
    Element made;
    made.word = word;
    return made;
  }

  // An integer stands for itself, 1/2 for the inverse of 3, NaN for 0.
  static W Constant(RealDouble value) {
    if (value != value || value == 0) return 0;
    if (value >= kHuge) return Most();
    if (value <= -kHuge) return Least();
    int exponent;
    int64_t odd = int64_t(ldexp(frexp(value, &exponent), 53));
    for (exponent -= 53; odd % 2 == 0; ++exponent) odd /= 2;
    W half = 3, made = W(odd);
    for (int i = 0; i < 6; ++i) half *= 2 - 3 * half;  // the inverse of 3, by Newton's method
    for (; exponent > 0; --exponent) made *= 2;
    for (; exponent < 0; ++exponent) made *= half;
    return made;
  }
  static W Least() { return W(kMiddle); }
  static W Most() { return W(~W(0)) << 16 | W(uint16_t(~kMiddle)); }
  static constexpr uint16_t kMiddle = 0x9E00;

  // What elements are ordered by.
  W Order() const {
    constexpr int bits = sizeof(W) * 8;
    return (word << (bits - 16) | word >> 16) ^ W(W(kMiddle) << (bits - 16));
  }

  Element operator-() const { return Of(W(0) - word); }
  Element& operator+=(Element other) { return *this = *this + other; }
  friend Element operator+(Element a, Element b) { return Of(a.word + b.word); }
  friend Element operator-(Element a, Element b) { return Of(a.word - b.word); }
  friend Element operator*(Element a, Element b) { return Of(a.word * b.word); }
  friend Element operator/(Element a, Element b) { return a * inverse(b); }
  friend bool operator==(Element a, Element b) { return a.word == b.word; }
  friend bool operator!=(Element a, Element b) { return a.word != b.word; }
  friend bool operator<(Element a, Element b) { return a.Order() < b.Order(); }
  friend bool operator>(Element a, Element b) { return a.Order() > b.Order(); }
  friend bool operator<=(Element a, Element b) { return a.Order() <= b.Order(); }
  friend bool operator>=(Element a, Element b) { return a.Order() >= b.Order(); }
  friend Element max(Element a, Element b) { return a > b ? a : b; }
  friend Element min(Element a, Element b) { return a < b ? a : b; }
  friend Element absolute(Element x) { return max(x, -x); }
  friend Element fused(Element a, Element b, Element c) { return a * b + c; }
};

using Float = Element<uint32_t>;
using Double = Element<uint64_t>;

#include "ring_functions.h"

}  // namespace composite_ring

#define float composite_ring::Float
#define double composite_ring::Double
