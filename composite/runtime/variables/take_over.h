// Where the sums that parts of a graph give updates of variables (updates.h) may lie in these
// variables.
#ifndef COMPOSITE_RUNTIME_VARIABLES_TAKE_OVER_H_
#define COMPOSITE_RUNTIME_VARIABLES_TAKE_OVER_H_

#include <vector>

#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// What becomes one node.
struct GraphPart {
  std::vector<tensorflow::Node*> nodes;
  std::vector<NodeOutput> arguments;
  std::vector<NodeOutput> results;
};

struct TakeOvers {
  // Pairs of an argument, what a variable held, and the result that it is to hold, one after the
  // other: see kUpdatesAttr.
  std::vector<int> pairs;
  // What the part then has to wait for, since it may be the one that writes: what the updates wait
  // for.
  std::vector<tensorflow::Node*> waits;
};

// For each part what it may write over. Not where the update waits for the part by another way, or
// for a node that is in one.
std::vector<TakeOvers> TakeOversOf(const tensorflow::Graph& graph,
                                   const std::vector<GraphPart>& parts);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_TAKE_OVER_H_
