// Matrix products of words. Each unit that includes this file has a copy of its own, compiled for
// its level of CPUs.
#ifndef COMPOSITE_RUNTIME_WORDS_PRODUCTS_H_
#define COMPOSITE_RUNTIME_WORDS_PRODUCTS_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "composite/runtime/words/factors.h"

namespace composite {
namespace words {
namespace {

constexpr int64_t kVectorBytes = 32;
constexpr int kRows = 4;  // that are computed at once

template <typename T>
constexpr int64_t kColumns = 2 * kVectorBytes / sizeof(T);  // of a panel

template <typename T>
struct Vector {
  typedef T Words __attribute__((vector_size(kVectorBytes)));
};

// Some rows of a product with a panel: `count` columns of the second factor, row by row.
template <typename T, int rows>
void MultiplyRows(const T* a, int64_t inner, const char* panel, T* to, int64_t columns,
                  int64_t count) {
  typename Vector<T>::Words sums[rows][2] = {};
  for (int64_t k = 0; k < inner; ++k, panel += 2 * kVectorBytes) {
    typename Vector<T>::Words b[2];
    std::memcpy(b, panel, sizeof(b));
    for (int row = 0; row < rows; ++row) {
      const T word = a[row * inner + k];
      sums[row][0] += b[0] * word;
      sums[row][1] += b[1] * word;
    }
  }
  for (int row = 0; row < rows; ++row) {
    std::memcpy(to + row * columns, sums[row], count * sizeof(T));
  }
}

template <typename T>
bool MultiplyWords(const Factors& f) {
  char* const panel = static_cast<char*>(std::malloc((f.inner + 1) * 2 * kVectorBytes));
  if (panel == nullptr) return false;
  const T* const a = static_cast<const T*>(f.a);
  const T* const b = static_cast<const T*>(f.b);
  T* const to = static_cast<T*>(f.to);
  for (int64_t first = 0; first < f.columns; first += kColumns<T>) {
    const int64_t left = f.columns - first;
    const int64_t count = left < kColumns<T> ? left : kColumns<T>;
    for (int64_t k = 0; k < f.inner; ++k) {
      char* const row = panel + k * 2 * kVectorBytes;
      std::memset(row, 0, 2 * kVectorBytes);
      std::memcpy(row, b + k * f.columns + first, count * sizeof(T));
    }
    int64_t row = 0;
    for (; row + kRows <= f.rows; row += kRows) {
      MultiplyRows<T, kRows>(a + row * f.inner, f.inner, panel, to + row * f.columns + first,
                             f.columns, count);
    }
    for (; row < f.rows; ++row) {
      MultiplyRows<T, 1>(a + row * f.inner, f.inner, panel, to + row * f.columns + first, f.columns,
                         count);
    }
  }
  std::free(panel);
  return true;
}

// Makes the product. False if there is no memory, or for words of other sizes than 2, 4 and 8
// bytes.
bool InPanels(const Factors& factors) {
  switch (factors.bytes) {
    case 2:
      return MultiplyWords<uint16_t>(factors);
    case 4:
      return MultiplyWords<uint32_t>(factors);
    case 8:
      return MultiplyWords<uint64_t>(factors);
    default:
      return false;
  }
}

}  // namespace
}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_PRODUCTS_H_
