// Which nodes of a graph become one.
//
// A region is convex: no path leaves it and comes back, so one node can stand for it. Regions grow
// along edges in topological order, ties broken by when nodes were made, so that the equal layers
// of a model become equal regions and share their kernels.
#ifndef COMPOSITE_RUNTIME_REGIONS_PARTITION_H_
#define COMPOSITE_RUNTIME_REGIONS_PARTITION_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "composite/runtime/regions/region_loops.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// What a region may be. To compile a region takes as long as it has stages to write.
struct RegionLimits {
  int computing = 2;  // at least: ops that compute
  int nodes = 512;    // at most, those of loops included
  int sums = 8;       // at most: products and convolutions
};

// The regions of a graph, each with its nodes in topological order. None for a graph in which
// control flow was lowered: which nodes of it are dead is told by no op.
// `loops`: of this graph. `may_join`: whether kernels may run where this node does.
std::vector<std::vector<tensorflow::Node*>> FindRegions(
    const tensorflow::Graph& graph, const RegionLimits& limits, const RegionLoops& loops,
    absl::FunctionRef<bool(const tensorflow::Node&)> may_join);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_PARTITION_H_
