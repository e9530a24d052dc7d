// Runs programs of words, step by step, with the threads of a team.
#ifndef COMPOSITE_RUNTIME_WORDS_RUN_H_
#define COMPOSITE_RUNTIME_WORDS_RUN_H_

#include <cstdint>

#include "absl/types/span.h"
#include "composite/runtime/launch/fixed_team.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/words/program.h"

namespace composite {
namespace words {

constexpr char kLimitError[] = "LimitError";

// An argument: row-major and compact.
struct Array {
  void* data;
  int64_t element;  // bytes
  absl::Span<const int64_t> shape;
};

// Runs a program. False and *error, as for a kernel that raises it: TypeError for arguments that it
// does not take; what it says itself when a condition of it does not hold; InternalError when it
// would read or write outside of a buffer, or the tasks of a loop do not meet at the same barriers;
// kLimitError when its loops have run more than `steps` instructions, which is counted roughly.
// Buffers of its own begin with bits of NaN.
bool Run(const Program& program, absl::Span<const Array> arguments, int64_t steps, FixedTeam& team,
         tvm_abi::Error* error);

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_RUN_H_
