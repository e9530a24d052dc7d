// What a node may be to a region, by itself.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_

#include "tensorflow/core/graph/graph.h"

namespace composite {

enum class RegionRole {
  kOutside,
  // A constant so small that each region which reads it has its own: an axis, a shape, an epsilon.
  kCopied,
  kMoves,
  kComputes,
  kSums,
};

// Outside is what has no lowering or a dtype that no kernel has, what keeps state, runs functions,
// draws numbers or passes control on, and what waits for another node or has one wait for it.
RegionRole RoleOf(const tensorflow::Node& node);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_
