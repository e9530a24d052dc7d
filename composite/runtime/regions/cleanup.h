// What a graph is freed of before its regions are found.
#ifndef COMPOSITE_RUNTIME_REGIONS_CLEANUP_H_
#define COMPOSITE_RUNTIME_REGIONS_CLEANUP_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Puts a Shape for each of its tensors in the place of a ShapeN. The gradients of a convolution ask
// one for the image's and the filter's: no region that has but one of them would know its shape.
absl::Status SplitShapes(tensorflow::Graph* graph);

// The names of the nodes of a function that its callers wait for.
absl::flat_hash_set<std::string> Awaited(const tensorflow::FunctionDef& function);

// Removes nodes whose values nobody needs, as far as a region might have them: TensorFlow removes
// all of them, later. A region that had them would be handed what they read, and be as large as if
// it computed them. `function` says which nodes its callers wait for.
void RemoveUnread(const tensorflow::FunctionDef& function, tensorflow::Graph* graph);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_CLEANUP_H_
