// Parts of a graph that have no op of their own, made one node each: CompositeCall of a function.
#ifndef COMPOSITE_RUNTIME_REGIONS_FORM_REGIONS_H_
#define COMPOSITE_RUNTIME_REGIONS_FORM_REGIONS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "composite/runtime/regions/region_function.h"
#include "composite/runtime/regions/selection.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// What regions may have of the nodes of a graph.
struct Joining {
  absl::FunctionRef<bool(const tensorflow::Node&)> may_join;
  // Whether sums may take the places of additions to variables, so that regions have them, and
  // updates of tensors those of stacks of their parts.
  bool writes_in_place;
  // Whether two arguments of a function may be one variable.
  bool may_have_twice = true;
  // Which regions stay; null: all of them.
  bool (*may_be)(const RegionFunction&) = nullptr;
};

// Puts calls in the places of the regions of a function's graph, without what is denied, and the
// functions of these into `library`, which has those that the graph's nodes run. How many there
// are. An error leaves the graph in pieces; unless there is one, TensorFlow can run the graph, see
// graph_check.h.
absl::StatusOr<int> AddRegions(const tensorflow::FunctionDef& function, const Selection& denied,
                               const Joining& joining,
                               tensorflow::FunctionLibraryDefinition* library,
                               tensorflow::Graph* graph);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_FORM_REGIONS_H_
