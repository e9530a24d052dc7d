// What instructions do that compute words of others: functions by op, kind and lanes.
#ifndef COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_
#define COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_

#include <cstdint>

#include "composite/runtime/words/program.h"

namespace composite {
namespace words {

inline char* At(char* const* buffers, Place place) {
  return buffers[place >> 32] + static_cast<uint32_t>(place);
}

using Compute = void (*)(const Instruction& instruction, char* const* buffers);

// What computes the result of an instruction; null if it is none of these.
Compute ComputeOf(const Instruction& instruction);

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_
