// What remains in the graph of a loop that a region contains: the reads of its variables and a
// NoOp.
//
// A loop that reads variables waits for earlier writes, and later writes wait for the loop. In its
// place, reads of the variables wait for the earlier writes and pass the values to the region. A
// NoOp with the name of the loop waits for the reads, and the later writes wait for the NoOp.
#ifndef COMPOSITE_RUNTIME_REGIONS_LEFT_BEHIND_H_
#define COMPOSITE_RUNTIME_REGIONS_LEFT_BEHIND_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "composite/runtime/regions/region_function.h"
#include "composite/runtime/variables/uses.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

struct LeftBehind {
  struct Read {
    NodeOutput variable;
    tensorflow::NodeDef node;  // without inputs
    int argument = 0;          // of the region, which receives the value
  };
  std::vector<Read> reads;
  // Nodes outside the region that the reads and the NoOps wait for.
  std::vector<tensorflow::Node*> before;
  // Nodes that precede the loops through data edges alone. The reads wait for these; without reads,
  // the NoOps do.
  std::vector<tensorflow::Node*> behind;
  // The loops that a NoOp replaces.
  std::vector<tensorflow::Node*> loops;
  // Nodes that the region waits for because nodes that were copied into it did.
  std::vector<tensorflow::Node*> waits;
};

LeftBehind LeavesBehind(const std::vector<tensorflow::Node*>& nodes, const RegionFunction& function,
                        VariableUses* uses, tensorflow::Graph* graph);

// Returns the NoOp that replaces a loop, without inputs.
tensorflow::NodeDef NoOpFor(const tensorflow::Node& loop);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_LEFT_BEHIND_H_
