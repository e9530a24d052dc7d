// What a node may be to a region, by itself.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_

#include <string>

#include "tensorflow/core/framework/attr_value.pb.h"
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
// draws numbers or passes control on, and what waits for another node or has one wait for it. A
// composite is what its body is; outside are those with options other than the thread's, which are
// the region's, and those of which a value must be known that a region does not know.
RegionRole RoleOf(const tensorflow::Node& node);

// Whether a copy of a node in a region's function keeps an attribute of it.
bool KeepsAttr(const std::string& name, const tensorflow::AttrValue& value);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_
