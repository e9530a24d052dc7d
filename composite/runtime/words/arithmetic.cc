#include "composite/runtime/words/arithmetic.h"

#include "composite/runtime/base/cpu_level.h"
#include "composite/runtime/words/lanes.h"
#include "composite/runtime/words/products.h"

namespace composite {
namespace words {

const Arithmetic kBaseline = {InLanes, InPanels};

const Arithmetic& ArithmeticOfCpu() {
  return ExcludedLevel("x86-64-v3", LevelOfCpu()).empty() ? kAvx2 : kBaseline;
}

}  // namespace words
}  // namespace composite
