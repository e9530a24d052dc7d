// Composites inside function bodies (of While, If, calls, datasets), for the graph pass.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_REWRITE_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_REWRITE_H_

#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "composite/runtime/expand/expansion.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// The function with calls in the place of its composites that have a final verdict, whose
// expansions are added to `used` (`devices`: see PlacedOn); with `replace`, also with compositions
// in the place of TF ops whose nodes they replace. Empty when there is neither.
absl::optional<tensorflow::FunctionDef> RewriteFunction(
    const tensorflow::FunctionDef& function, bool replace, const tensorflow::DeviceSet* devices,
    std::vector<std::shared_ptr<const Expansion>>* used);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_REWRITE_H_
