// A region as the function that its node calls.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_FUNCTION_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_FUNCTION_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "composite/runtime/regions/region_loops.h"
#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// What a region reads from outside: a value, or what a variable holds.
struct Argument {
  NodeOutput value;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  bool is_variable = false;
};

struct RegionFunction {
  // Named by what it computes: equal regions of a process have one function.
  tensorflow::FunctionDef function;
  std::vector<tensorflow::FunctionDef> loops;  // the functions that its loops run
  std::vector<Argument> arguments;
  std::vector<NodeOutput> results;  // what is read of it outside
  // Which node each of the function's is a copy of.
  absl::flat_hash_map<std::string, const tensorflow::Node*> origins;
};

// Takes the views out of a region, nodes in topological order, that are read outside and are of
// what is outside, or of one that has several readers there: the region would give copies. They
// stay where they are, and are given back: the region has its own of them.
std::vector<tensorflow::Node*> TakeViews(std::vector<tensorflow::Node*>* nodes);

// `nodes` are in topological order, `views` taken out of them, `loops` those of their graph. What a
// region copies is found behind its inputs.
absl::StatusOr<RegionFunction> MakeRegionFunction(const std::vector<tensorflow::Node*>& nodes,
                                                  const std::vector<tensorflow::Node*>& views,
                                                  const RegionLoops& loops);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_FUNCTION_H_
