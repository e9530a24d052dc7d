// What is known of one compiled kernel: which calls it covers, what shapes it returns, on which
// machines it runs, how it was measured. The serialized form is a NodeDef of named attributes.
#ifndef COMPOSITE_RUNTIME_KERNELS_KERNEL_RECORD_H_
#define COMPOSITE_RUNTIME_KERNELS_KERNEL_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/cuda/launch_plan.h"
#include "composite/runtime/kernels/decision_table.h"
#include "composite/runtime/request/dim_expression.h"
#include "composite/runtime/request/kernel_shapes.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.pb.h"

namespace composite {

// Unchecked: a library brought it for a GPU that was not there when the library was built, and no
// call runs it before it was checked here.
enum class Verdict { kUnchecked, kUnmeasured, kKernel, kExpansion };
const char* Name(Verdict verdict);

// An argument that a kernel takes after its outputs: made of one constant input, once, by the
// function `<name>_pack<i>`.
struct PackedArgument {
  int source;  // position among the inputs
  int64_t elements;
  tensorflow::DataType dtype;
};

// An output that may lie in the memory of an input which nobody else needs: the kernel reads an
// element before it writes its place, and never fails.
struct Forward {
  int input;
  int output;

  bool operator==(const Forward& other) const {
    return input == other.input && output == other.output;
  }
};

struct KernelRecord {
  std::string name;  // the C symbol is "__tvm_ffi_" + name
  std::string op;
  std::string program;             // digest
  tensorflow::AttrValueMap attrs;  // of the op; the names that begin with "_" are not here
  absl::optional<tensorflow::AttrValue> constants;  // the inputs that it takes for constant
  std::vector<PackedArgument> packed;
  std::vector<Forward> forwards;
  Signature in_shapes;
  std::vector<std::vector<DimExpression>> out_shapes;
  std::vector<int64_t> minimums;  // by symbol
  std::vector<int64_t> divisors;
  // Of a kernel for a GPU, whose machine code the library is.
  absl::optional<LaunchPlan> launches;
  std::string library;  // absolute path; empty: the kernel came with a built library
  std::string library_sha256;
  // What the addresses of a CPU kernel's tensors must be multiples of; 1: what elements need.
  size_t alignment = 1;
  bool barriers = true;  // false: no loop of it has one, so that it needs no team
  std::string isa;
  std::string target;
  std::string device;
  bool invariant = false;  // see Options
  Verdict verdict = Verdict::kUnmeasured;
  float kernel_us = 0;  // at the size of the call that asked for it
  float expansion_us = 0;
  DecisionTable decisions;
  // The largest error that the check found, in units of `error_unit`; negative: not known.
  float error = -1;
  std::string error_unit;
  bool exact = false;     // gives the bits of the expansion for whatever inputs
  std::string max_error;  // of a record from before there was a number
  std::string strategy;
  std::string proof;    // "proven", or what was not; empty: of a record from before there was one
  std::string algebra;  // whether it is equal to its body over the ring; empty: not asked

  // The C symbol of what makes packed argument i, without "__tvm_ffi_".
  std::string PackerName(size_t i) const;
  int symbols() const { return static_cast<int>(minimums.size()); }

  // Whether the kernel is right for these values, with which a call matched in_shapes.
  bool Admits(absl::Span<const int64_t> values) const;
  // Whether it was measured to be no slower for these values.
  bool Wins(absl::Span<const int64_t> values) const {
    return verdict == Verdict::kKernel && decisions.KernelWins(values);
  }
  // How near it is to the expansion, for people; empty when not known.
  std::string Accuracy() const;
  // The dims of output i.
  absl::Status OutputDims(int i, absl::Span<const int64_t> values,
                          absl::InlinedVector<int64_t, 8>* dims) const;
};

// InvalidArgument that names the attribute which is missing or malformed.
absl::StatusOr<KernelRecord> ParseKernelRecord(const tensorflow::NodeDef& record);

// InvalidArgument when the kernel may not run under backend="tvm" with numerics="strict".
absl::Status CheckExact(const KernelRecord& record);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_KERNEL_RECORD_H_
