// Which parts of a graph that XLA compiles are made regions.
#ifndef COMPOSITE_RUNTIME_XLA_XLA_REGION_H_
#define COMPOSITE_RUNTIME_XLA_XLA_REGION_H_

#include "composite/runtime/regions/region_function.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Whether a region with this node may have a kernel that XLA's code calls. Random numbers are
// XLA's, and a kernel that leaves some inputs to the expansion, such as an index out of range, is
// none for XLA (xla/kernel_choice.h): such nodes would keep those around them from one.
bool MayJoinXlaRegion(const tensorflow::Node& node);

// Whether a kernel for the region may pay, and XLA can compile the region's expansion wherever it
// compiles its nodes. XLA makes one loop of elementwise ops itself. And where an op takes its shape
// from an argument, XLA has to see that: it compiles the function for each value of the argument,
// which it finds by the ops that read it.
bool MayBeXlaRegion(const RegionFunction& region);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_XLA_REGION_H_
