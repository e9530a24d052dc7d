// What stays in a graph of the loops that a region takes in: reads of their variables, and waiting.
//
// A loop that read variables waited for writes, and writes waited for it. The reads wait for those
// now, and a NoOp of the loop's name is waited for: whoever knows the name, finds it.
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
    int argument = 0;          // of the region, that it gives
  };
  std::vector<Read> reads;
  // Outside of the region: what the reads and the NoOps wait for.
  std::vector<tensorflow::Node*> before;
  // What the loops were behind without a control edge: the reads wait for it, and where there are
  // none, the NoOps.
  std::vector<tensorflow::Node*> behind;
  // Loops in whose places are NoOps, which wait for the reads, too.
  std::vector<tensorflow::Node*> loops;
  // What the region waits for, since nodes that it has its own copies of do.
  std::vector<tensorflow::Node*> waits;
};

LeftBehind LeavesBehind(const std::vector<tensorflow::Node*>& nodes, const RegionFunction& function,
                        VariableUses* uses, tensorflow::Graph* graph);

// The NoOp in the place of a loop, without inputs.
tensorflow::NodeDef NoOpFor(const tensorflow::Node& loop);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_LEFT_BEHIND_H_
