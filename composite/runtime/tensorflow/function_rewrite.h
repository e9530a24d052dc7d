// Composites inside function bodies (of While, If, calls, datasets), for the graph pass.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_REWRITE_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_REWRITE_H_

#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/tensorflow/node_rewrite.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// The function with each node as RewriteNode has it; the expansions that it calls then are added to
// `used`. Empty when all nodes stay.
absl::optional<tensorflow::FunctionDef> RewriteFunction(
    const tensorflow::FunctionDef& function, const RewriteOptions& options,
    std::vector<std::shared_ptr<const Expansion>>* used);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_REWRITE_H_
