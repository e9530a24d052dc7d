// Regions with the inputs of a call, as files: what a report of a mistake needs, and what
// composite.replay reads.
#ifndef COMPOSITE_RUNTIME_RUN_REGION_DUMP_H_
#define COMPOSITE_RUNTIME_RUN_REGION_DUMP_H_

#include "composite/runtime/program/op_version.h"
#include "composite/runtime/request/kernel_shapes.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// Where a file of a dump, a GraphDef with the region's functions and one node, has the values of
// the node's inputs: list(tensor).
inline constexpr char kDumpedInputs[] = "_composite_inputs";

// Whether COMPOSITE_REGIONS_DUMP names a folder.
bool RegionsAreDumped();

// Writes a region's node and its inputs to that folder, once for the shapes of a call and for few
// shapes of a region. What goes wrong is told in the log. `version`: of a region.
void DumpRegion(const tensorflow::OpKernel& node, const OpVersion& version, const Signature& call,
                tensorflow::OpKernelContext* context);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_REGION_DUMP_H_
