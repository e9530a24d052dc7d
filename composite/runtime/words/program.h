// Programs of words, as the compiler writes them (compiler/tvm/algebra/program.py): the loops of a
// kernel with other arithmetic, to be run once or twice, so that machine code of them is not worth
// its time.
#ifndef COMPOSITE_RUNTIME_WORDS_PROGRAM_H_
#define COMPOSITE_RUNTIME_WORDS_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace composite {
namespace words {

// What an instruction does; the numbers are those of OPS in program.py.
// clang-format off
enum Op : int64_t {
  kEnd, kMove, kAdd, kSub, kMul, kMulAdd, kAnd, kOr, kXor, kShl, kShr,
  kDiv, kMod, kFloorDiv, kFloorMod, kMin, kMax, kEq, kNe, kLt, kLe,
  kSelect, kCast, kSpread, kRamp, kLoad, kLoadSpread, kLoadApart, kGather,
  kStore, kStoreApart, kScatter, kAllocate, kFill, kLoop, kNext,
  kJump, kJumpUnless, kParallel, kTeam, kMeet, kCall, kReturn, kAssert,
  kOps,
};
// clang-format on

// What a word is; the numbers are those of KINDS in program.py.
enum Kind : int64_t { kUint8, kInt8, kUint16, kInt16, kUint32, kInt32, kUint64, kInt64, kKinds };

// A place is a buffer, in the upper 32 bits, and bytes behind its begin. Buffer 0 is the frame,
// whose first words are 0.
using Place = int64_t;

struct Instruction {
  int64_t op;
  int64_t kind;
  int64_t lanes;
  int64_t extra;  // a distance of a jump, a number of bytes or of elements, another kind
  Place to;
  Place a;
  Place b;
  Place c;
};

// What computes the result of an instruction.
using Compute = void (*)(const Instruction& instruction, char* const* buffers);

// A dim that an argument must have.
struct Size {
  enum { kKnown, kSymbol, kAny };
  int64_t kind;
  int64_t value;  // kKnown: the dim. kSymbol: the place of it, where the first argument leaves it
};

struct Parameter {
  int64_t buffer;
  int64_t element;  // bytes
  std::vector<Size> shape;
};

struct Constant {
  Place place;
  std::string_view bytes;
};

// What it points to is the file's, which must live as long.
struct Program {
  std::string_view name;
  int64_t frame = 0;  // bytes
  int64_t buffers = 0;
  std::vector<Parameter> parameters;
  std::vector<std::string_view> messages;
  std::vector<Constant> constants;
  std::vector<int64_t> functions;  // where each begins in the code
  std::vector<Instruction> code;
};

// Whether a file has programs and is no library of machine code.
bool HasPrograms(std::string_view file);

// A program of a file. NotFound if there is none of this name, FailedPrecondition for a file that
// ends too early.
absl::StatusOr<Program> FindProgram(std::string_view file, std::string_view name);

}  // namespace words
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_WORDS_PROGRAM_H_
