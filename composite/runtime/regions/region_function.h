// A region as the function that its node calls.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_FUNCTION_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_FUNCTION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

using Value = std::pair<tensorflow::Node*, int>;  // a node and one of its outputs

struct RegionFunction {
  // Named by what it computes: equal regions of a process have one function.
  tensorflow::FunctionDef function;
  std::vector<Value> arguments;  // what the region reads from outside
  std::vector<Value> results;    // what is read of it outside
  // Which node each of the function's is a copy of.
  absl::flat_hash_map<std::string, const tensorflow::Node*> origins;
};

// `nodes` are in topological order. Constants that a region copies are found behind their inputs.
absl::StatusOr<RegionFunction> MakeRegionFunction(const std::vector<tensorflow::Node*>& nodes);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_FUNCTION_H_
