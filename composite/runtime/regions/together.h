// Which nodes are inside of one region or outside of all: a list of tensors, a value that no node
// can be handed but TensorFlow's own, does not cross the boundary of a region.
#ifndef COMPOSITE_RUNTIME_REGIONS_TOGETHER_H_
#define COMPOSITE_RUNTIME_REGIONS_TOGETHER_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

struct Together {
  std::vector<tensorflow::Node*> nodes;  // in topological order
  bool may_be_inside = false;
};

// All nodes of a graph, each after what it reads or waits for; among those that are ready, the one
// that was made first. Those that hand each other lists come together if they may all be inside,
// are on one device, and no path leaves them and comes back.
std::vector<Together> InOrder(const tensorflow::Graph& graph,
                              absl::FunctionRef<bool(const tensorflow::Node&)> may_be_inside);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_TOGETHER_H_
