// Nodes of regions for which the kernel compiler has no lowering. A region is named by what it
// computes: the next one that would have the name leaves these nodes outside, and keeps a kernel.
#ifndef COMPOSITE_RUNTIME_REGIONS_REFUSED_NODES_H_
#define COMPOSITE_RUNTIME_REGIONS_REFUSED_NODES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace composite {

// Remembers, for the life of the process, a node of a function. Functions that are no regions are
// none of its business, and there is an end to how many it remembers.
void RefuseNode(absl::string_view function, absl::string_view node);

// Those of a region's function, by their names in it.
std::vector<std::string> RefusedNodes(absl::string_view function);

// The functions of regions that have some, sorted.
std::vector<std::string> RegionsWithRefusedNodes();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REFUSED_NODES_H_
