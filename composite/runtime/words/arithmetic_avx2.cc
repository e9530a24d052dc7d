// The build compiles this file, and nothing else, for CPUs that have AVX2.
#include "composite/runtime/words/lanes.h"

namespace composite {
namespace words {

Compute ComputeByAvx2(const Instruction& instruction) { return InLanes(instruction); }

}  // namespace words
}  // namespace composite
