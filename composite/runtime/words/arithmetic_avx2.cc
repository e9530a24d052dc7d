// The build compiles this file, and nothing else, for CPUs that have AVX2.
#include "composite/runtime/words/arithmetic.h"
#include "composite/runtime/words/lanes.h"
#include "composite/runtime/words/products.h"

namespace composite {
namespace words {

const Arithmetic kAvx2 = {InLanes, InPanels};

}  // namespace words
}  // namespace composite
