// Loops as regions have them: without state, and named by what they compute.
//
// A trip of a recurrent layer of Keras reads the layer's variables. A loop in a region takes their
// values, which are read in front of the region: no op that a region holds writes to a variable, so
// that each trip would have read the same.
//
// A call of a function is a loop of one trip. Keras convolves in groups in a function of its own,
// which XLA compiles: inside of a region, it is one op among others to a kernel, and stays such a
// function where TensorFlow's ops run.
#ifndef COMPOSITE_RUNTIME_REGIONS_REGION_LOOPS_H_
#define COMPOSITE_RUNTIME_REGIONS_REGION_LOOPS_H_

#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

struct RegionLoop {
  tensorflow::FunctionDef cond, body;  // a call has no condition
  // Of the inputs that are variables, which trips read alone: what these hold.
  std::map<int, tensorflow::DataType> variables;
  // Whether XLA compiles the function that is called: then it does in the region, too, where no
  // kernel serves. TensorFlow may have no other way to run the op.
  bool is_of_xla = false;
  // What a trip does, as a region counts it.
  int nodes = 0, computing = 0, sums = 0;

  bool is_call() const { return cond.signature().name().empty(); }
};

// Those of a graph that may be in a region: all ops of a trip are covered, and the condition
// compares whole numbers, or a function is called that computes one op. `library` has their
// functions, and is not kept.
class RegionLoops {
 public:
  RegionLoops(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library);

  // Null for any other node.
  const RegionLoop* Find(const tensorflow::Node& node) const;

 private:
  absl::flat_hash_map<const tensorflow::Node*, RegionLoop> loops_;
};

// A copy of a loop's node for a region's function, as region_node.h has it of others.
tensorflow::NodeDef CopyOfLoop(const tensorflow::Node& node, const RegionLoop& loop,
                               std::string name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_REGION_LOOPS_H_
