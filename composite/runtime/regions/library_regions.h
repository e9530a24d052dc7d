// Regions of a graph and of the functions that it runs, as form_regions.h has them of one graph.
#ifndef COMPOSITE_RUNTIME_REGIONS_LIBRARY_REGIONS_H_
#define COMPOSITE_RUNTIME_REGIONS_LIBRARY_REGIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "composite/runtime/regions/form_regions.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Functions that get regions, and what stays outside of these, as a Selection takes it. In order:
// COMPOSITE_REGIONS_FUEL counts regions as they are met, in one process as in the next.
using DeniedOf = std::map<std::string, absl::flat_hash_set<std::string>>;

// Adds regions to the functions of `library` that `wanted` names, and to the graph of `function` if
// it is one of them, in whose place another graph then is; null for a graph that is no function's.
// How many there are. What could not be run with regions stays as it is, and is counted and logged.
absl::StatusOr<int64_t> FormRegions(const DeniedOf& wanted, const Joining& joining,
                                    const tensorflow::FunctionDef* function,
                                    tensorflow::FunctionLibraryDefinition* library,
                                    std::unique_ptr<tensorflow::Graph>* graph);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_LIBRARY_REGIONS_H_
