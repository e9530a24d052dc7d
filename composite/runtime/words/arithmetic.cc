#include "composite/runtime/words/arithmetic.h"

#include "composite/runtime/base/cpu_level.h"
#include "composite/runtime/words/lanes.h"

namespace composite {
namespace words {

Arithmetic ArithmeticOfCpu() {
  return ExcludedLevel("x86-64-v3", LevelOfCpu()).empty() ? ComputeByAvx2 : ComputeOf;
}

Compute ComputeOf(const Instruction& instruction) { return InLanes(instruction); }

}  // namespace words
}  // namespace composite
