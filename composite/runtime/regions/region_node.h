// What a node may be to a region, by itself.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_

#include <string>

#include "composite/runtime/kernels/dtypes.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

enum class RegionRole {
  kOutside,
  // What each region that reads it has its own of: a constant that is small, an axis, a shape, an
  // epsilon, or a view of a weight.
  kCopied,
  kMoves,
  kComputes,
  kSums,
};

// Outside is what has no lowering or a dtype that no kernel has, what keeps state, runs functions,
// draws numbers or passes control on, and what waits for another node or has one wait for it. A
// composite is what its body is; outside are those with options other than the thread's, which are
// the region's, and those of which a value must be known that a region does not know. Loops, and
// who else hands lists of tensors to the node, are not looked at, see together.h.
RegionRole RoleOf(const tensorflow::Node& node);

// The same of a node in the function of a loop, where no composite may be. What waits there waits
// for reads of variables, which are none in a region.
RegionRole RoleInLoop(const tensorflow::Node& node);

// Whether a node gives what it is given, in another shape at most, which a constant says: without a
// copy, outside of a region.
bool IsView(const tensorflow::Node& node);

// Whether a node gives the same value in every call, as a rule: a constant, what is read of a
// variable, and views of these.
bool IsWeight(const tensorflow::Node& node);

// Whether values inside of a region may have these dtypes. Lists of tensors, which are variants,
// are arrays in a kernel.
bool AreInside(const DtypeSet& dtypes);

// Whether somebody colocates the node, and so says where it runs; a region has one place.
bool IsColocated(const tensorflow::Node& node);

// A copy of a node in a region's function, without inputs, notes and the name that it had: equal
// regions are equal functions. The author's place stays.
tensorflow::NodeDef CopyOf(const tensorflow::Node& node, std::string name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_NODE_H_
