// The memory of programs that run.
#ifndef COMPOSITE_RUNTIME_WORDS_MEMORY_H_
#define COMPOSITE_RUNTIME_WORDS_MEMORY_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "composite/runtime/words/program.h"

namespace composite {
namespace words {

constexpr size_t kAlignment = 64;
constexpr int kNothing = 0xFF;  // each byte of memory that holds no number

// Static, as units for other CPUs have it, too.
static inline char* At(char* const* buffers, Place place) {
  return buffers[place >> 32] + static_cast<uint32_t>(place);
}

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, FreeMemory>;

inline Memory NewMemory(int64_t bytes) {
  const size_t whole = (static_cast<size_t>(bytes) / kAlignment + 1) * kAlignment;
  return Memory(static_cast<char*>(std::aligned_alloc(kAlignment, whole)));
}

// Copies of usual sizes are a few instructions.
inline void Copy(char* to, const char* from, int64_t bytes) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 32:
      std::memmove(to, from, 32);
      return;
    case 64:
      std::memmove(to, from, 64);
      return;
    default:
      std::memmove(to, from, bytes);
  }
}

template <typename T>
void RepeatWord(char* to, const char* from, int64_t count) {
  T word;
  std::memcpy(&word, from, sizeof(word));
  T* const words = reinterpret_cast<T*>(to);
  for (int64_t n = 0; n < count; ++n) words[n] = word;
}

// Fills memory with a word of 2^shift bytes.
inline void Repeat(char* to, const char* from, int64_t count, int64_t shift) {
  switch (shift) {
    case 0:
      return RepeatWord<uint8_t>(to, from, count);
    case 1:
      return RepeatWord<uint16_t>(to, from, count);
    case 2:
      return RepeatWord<uint32_t>(to, from, count);
    default:
      return RepeatWord<uint64_t>(to, from, count);
  }
}

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_MEMORY_H_
