// Matrices of words that are multiplied.
#ifndef COMPOSITE_RUNTIME_WORDS_FACTORS_H_
#define COMPOSITE_RUNTIME_WORDS_FACTORS_H_

#include <cstdint>

namespace composite {
namespace words {

// Two matrices, and their product: row-major and compact.
struct Factors {
  int64_t bytes;  // of a word
  const void* a;  // of `rows` and `inner`
  const void* b;  // of `inner` and `columns`
  void* to;
  int64_t rows;
  int64_t inner;
  int64_t columns;
};

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_FACTORS_H_
