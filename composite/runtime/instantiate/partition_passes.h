// The passes that TensorFlow runs on each partition of a graph: oneDNN's rewrites.
//
// They are a part of what an op can do on a CPU: TensorFlow's own kernels refuse images whose
// channels come first, and gradients of convolutions with dilations or groups.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_PARTITION_PASSES_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_PARTITION_PASSES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

absl::Status RunPartitionPasses(const std::string& device,
                                tensorflow::FunctionLibraryDefinition* library,
                                std::unique_ptr<tensorflow::Graph>* graph);

// The functions of a library as the passes rewrite them for a CPU. Null: they rewrite none. A
// function that callers wait for nodes of is left as it is.
absl::StatusOr<std::shared_ptr<const tensorflow::FunctionLibraryDefinition>> WithPartitionPasses(
    const tensorflow::FunctionLibraryDefinition& library, const std::string& device);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_PARTITION_PASSES_H_
