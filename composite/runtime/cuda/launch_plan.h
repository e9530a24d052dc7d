// What the launches of a kernel for a GPU need, as its record says it: a kernel has no code on the
// host. compiler/tvm/cuda/launch.py writes such plans.
#ifndef COMPOSITE_RUNTIME_CUDA_LAUNCH_PLAN_H_
#define COMPOSITE_RUNTIME_CUDA_LAUNCH_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/request/dim_expression.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// The addresses of what a plan lists as aligned are multiples of this, and those of workspaces.
inline constexpr int kLaunchAlignment = 16;

struct LaunchArgument {
  // The address of an input, an output or a workspace; or the value of a symbol, 64 bits.
  enum Kind { kInput, kOutput, kWorkspace, kSize };

  Kind kind;
  int index;
};

// How many of each an argument may name.
struct LaunchOperands {
  int inputs;
  int outputs;
  int symbols;
};

struct KernelLaunch {
  std::string function;
  DimExpression work;  // units, which the blocks share out
  int64_t share;       // units that a block does at once; any number of blocks is right
  int threads;         // of a block
  int shared;          // bytes of a block's shared memory, which the function declares itself
  absl::InlinedVector<LaunchArgument, 8> arguments;

  // As many blocks as there is work for, or as the GPU runs at a time. 0: there is nothing to do.
  absl::StatusOr<unsigned> Blocks(absl::Span<const int64_t> symbols, int multiprocessors) const;
};

struct LaunchPlan {
  std::vector<KernelLaunch> launches;     // each begins when the one before has ended
  std::vector<DimExpression> workspaces;  // bytes
  std::vector<LaunchArgument> aligned;

  std::vector<std::string> Functions() const;
};

// The plan of a kernel record. InvalidArgument that names the field which is malformed.
absl::StatusOr<LaunchPlan> ParseLaunchPlan(const tensorflow::NodeDef& record,
                                           const LaunchOperands& operands);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CUDA_LAUNCH_PLAN_H_
