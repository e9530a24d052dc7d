// timings.json of a built library, as far as kernels are decided by it. compiler/emit/timings.py
// writes the text in one layout, which is all that is read here: no JSON in general.
#ifndef COMPOSITE_RUNTIME_KERNELS_TIMINGS_H_
#define COMPOSITE_RUNTIME_KERNELS_TIMINGS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// Adds to a kernel record what was measured for the kernel of its name. NotFound when the text has
// no word of it, InvalidArgument when it has another layout; the record is then as it was.
absl::Status AddTimings(absl::string_view timings, tensorflow::NodeDef* record);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_TIMINGS_H_
