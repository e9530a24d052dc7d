// Regions inside function bodies (of While, If, calls), as form_regions has them of a graph.
#ifndef COMPOSITE_RUNTIME_REGIONS_FUNCTION_REGIONS_H_
#define COMPOSITE_RUNTIME_REGIONS_FUNCTION_REGIONS_H_

#include "absl/status/statusor.h"
#include "composite/runtime/regions/form_regions.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

struct FunctionWithRegions {
  tensorflow::FunctionDef function;
  int regions = 0;
};

// A function with calls in the places of its regions, whose functions are added to `library`, which
// has those that it runs. Its signature and its attributes stay, and its nodes are those of the
// graph that the regions were formed in. One whose dtypes its caller decides has no regions. An
// error where it could not be run, see checking/graph_check.h.
absl::StatusOr<FunctionWithRegions> WithRegions(const tensorflow::FunctionDef& function,
                                                tensorflow::FunctionLibraryDefinition* library,
                                                const Selection& denied, const Joining& joining);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_FUNCTION_REGIONS_H_
