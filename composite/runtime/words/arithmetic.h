// What instructions do that compute words of others: functions by op, kind and lanes.
#ifndef COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_
#define COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_

#include "composite/runtime/words/program.h"

namespace composite {
namespace words {

// What computes the result of an instruction; null if it is none of these.
Compute ComputeOf(const Instruction& instruction);
Compute ComputeByAvx2(const Instruction& instruction);

// Which of the two this CPU runs, and the environment allows.
using Arithmetic = Compute (*)(const Instruction& instruction);
Arithmetic ArithmeticOfCpu();

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_ARITHMETIC_H_
