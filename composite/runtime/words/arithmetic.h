// What computes words, for the level of the CPU.
#ifndef COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_
#define COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_

#include "composite/runtime/words/factors.h"
#include "composite/runtime/words/program.h"

namespace composite {
namespace words {

struct Arithmetic {
  // What computes the result of an instruction; null if it is none of these.
  Compute (*compute_of)(const Instruction& instruction);
  // Multiplies words of 2, 4 or 8 bytes. False for others, or if there is no memory.
  bool (*multiply)(const Factors& factors);
};

extern const Arithmetic kBaseline;
extern const Arithmetic kAvx2;

// The one that this CPU runs, and the environment allows.
const Arithmetic& ArithmeticOfCpu();

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_
