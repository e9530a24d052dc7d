// What the file lib<name>_kernels.so of a built library says of its kernels: C structs, which
// compiler/emit/standalone.py writes and has once more. Nothing here is parsed.
#ifndef COMPOSITE_RUNTIME_STANDALONE_TABLE_H_
#define COMPOSITE_RUNTIME_STANDALONE_TABLE_H_

#include <cstdint>

#include "composite/runtime/launch/tvm_abi.h"

namespace composite {
namespace standalone {

constexpr int32_t kTableVersion = 1;
constexpr char kTableSymbol[] = "composite_kernel_table";

// No kernel has more.
constexpr int kMostSymbols = 64;
constexpr int kMostDims = 32;

struct Kernel {
  const char* name;
  const char* isa;
  const char* attributes;  // JSON, as in standalone_c_api.h
  const char* shapes;      // of its inputs, for people
  tvm_abi::Function function;
  int32_t inputs;
  int32_t outputs;
  int32_t symbols;
  int32_t barriers;            // some loop has one
  const uint32_t* dtypes;      // of inputs and outputs: code, bits << 8
  const int32_t* ranks;        // of inputs and outputs
  const int64_t* dims;         // of the inputs, one after the other; -(i + 1) is symbol i
  const int64_t* minimums;     // of symbols
  const int64_t* divisors;     // of symbols
  const int64_t* output_dims;  // for each dim its length, and so many pairs (op, value) in postfix
};

struct Op {
  const char* python_name;
  const char* name;
  const char* signature;  // JSON, for Python
  const char* defaults;   // the attributes of a call that gives none; null: it must give some
  int32_t count;
  const Kernel* kernels;
};

// Pointers to slots are null where the kernels have none.
struct Table {
  int32_t version;
  int32_t count;
  const Op* ops;
  void** parallel_launch;
  void** parallel_barrier;
  void** alloc_workspace;
  void** free_workspace;
  void (**raise)(const char* kind, const char** parts, int32_t count);
};

}  // namespace standalone
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STANDALONE_TABLE_H_
