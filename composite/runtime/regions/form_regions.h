// Parts of a graph that have no op of their own, made one node each: CompositeCall of a function.
#ifndef COMPOSITE_RUNTIME_REGIONS_FORM_REGIONS_H_
#define COMPOSITE_RUNTIME_REGIONS_FORM_REGIONS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "composite/runtime/regions/left_behind.h"
#include "composite/runtime/regions/region_function.h"
#include "composite/runtime/regions/selection.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// What regions may have of the nodes of a graph.
struct Joining {
  absl::FunctionRef<bool(const tensorflow::Node&)> may_join;
  // Whether sums may take the places of additions to variables, so that regions have them.
  bool updates_variables;
  // Whether two arguments of a function may be one variable.
  bool may_have_twice = true;
};

struct Region {
  std::vector<tensorflow::Node*> nodes;  // in topological order
  RegionFunction function;
  tensorflow::NodeDef call;  // what takes their place, without inputs
  LeftBehind left;
  std::vector<tensorflow::Node*> waits;  // for which the call waits, outside of all regions
};

// Readies the graph of a function for regions: updates of variables, see variables/updates.h, and
// what it is freed of, see cleanup.h. `library` has the functions that the graph's nodes run.
absl::Status Prepare(const tensorflow::FunctionDef& function,
                     const tensorflow::FunctionLibraryDefinition& library, const Joining& joining,
                     tensorflow::Graph* graph);

// The regions of a graph, without what is denied. One that cannot be a function is left out.
// `library` has the functions that the graph's nodes run.
std::vector<Region> MakeRegions(tensorflow::Graph* graph,
                                const tensorflow::FunctionLibraryDefinition& library,
                                const Selection& denied, const Joining& joining);

// Adds the functions of regions to a library; equal ones are one.
absl::Status AddFunctions(const std::vector<Region>& regions,
                          tensorflow::FunctionLibraryDefinition* library);

// Puts the calls in the places of the regions of their graph.
absl::Status Replace(tensorflow::Graph* graph, const std::vector<Region>& regions);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_FORM_REGIONS_H_
