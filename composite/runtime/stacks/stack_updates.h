// Stacks of updated parts of a tensor, made updates of the tensor, which write it where it lies.
#ifndef COMPOSITE_RUNTIME_STACKS_STACK_UPDATES_H_
#define COMPOSITE_RUNTIME_STACKS_STACK_UPDATES_H_

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Puts CompositeUpdateSlices in the place of each stack (Pack, or Packs of Packs) of all parts
// `x[:, i]` of a tensor of which each has a slice updated (XlaDynamicUpdateSlice), as a step of
// text generation stacks the caches of its layers. Updates that do not need each other's results
// are one node; whoever reads an updated part picks it from the updated tensor. What nobody reads
// any more stays in the graph. Not where a slice is updated with what is made of the same part,
// updated, or of a later one of the stack.
absl::Status MakeStackUpdates(tensorflow::Graph* graph);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STACKS_STACK_UPDATES_H_
