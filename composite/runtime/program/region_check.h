// What holds between the regions of a parsed program.
#ifndef COMPOSITE_RUNTIME_PROGRAM_REGION_CHECK_H_
#define COMPOSITE_RUNTIME_PROGRAM_REGION_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "composite/runtime/program/program.h"

namespace composite {

// InvalidArgument when a region can reach itself (regions are code, not procedures: it would never
// end), when they are nested too deeply, or when one is entered with other values than it takes or
// expected to give others than it gives.
absl::Status CheckRegions(const std::vector<ProgramRegion>& regions);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_REGION_CHECK_H_
