// What the launches of a kernel for a GPU need, as its record says it: a kernel has no code on the
// host. compiler/tvm/cuda/launch.py writes such plans.
#ifndef COMPOSITE_RUNTIME_CUDA_LAUNCH_PLAN_H_
#define COMPOSITE_RUNTIME_CUDA_LAUNCH_PLAN_H_

#include <array>
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
  // The address of an input, an output or a workspace; the value of a symbol, 64 bits; or a number.
  enum Kind { kInput, kOutput, kWorkspace, kSize, kNumber };

  Kind kind;
  int index;
  int64_t bits = 0;  // of a number, the lowest first: a function reads as many as it declares
};

// How many of each an argument may name.
struct LaunchOperands {
  int inputs;
  int outputs;
  int symbols;
};

// Blocks of a launch, or threads of a block, in each dimension.
using LaunchExtent = std::array<unsigned, 3>;

struct KernelLaunch {
  std::string function;
  DimExpression work;  // units, which the blocks share out
  int64_t share;       // units that a block does at once; any number of blocks is right
  int threads;         // of a block
  int shared;          // bytes of a block's shared memory, which the function declares itself
  int dynamic = 0;     // and bytes that the launch gives beside them
  std::vector<DimExpression> grid;  // blocks, in up to three dimensions; empty: as work says
  LaunchExtent block;               // the threads
  bool resident = false;            // its blocks wait for each other: no more than multiprocessors
  absl::InlinedVector<LaunchArgument, 8> arguments;

  // Those of the grid; or as many blocks as there is work for, or as the GPU runs at a time. A 0
  // among them: there is nothing to do. InvalidArgument for more than a GPU can number.
  absl::StatusOr<LaunchExtent> Blocks(absl::Span<const int64_t> symbols, int multiprocessors) const;
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
