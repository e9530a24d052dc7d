// Which variables a node reads and writes.
#ifndef COMPOSITE_RUNTIME_VARIABLES_USES_H_
#define COMPOSITE_RUNTIME_VARIABLES_USES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

enum class Use : signed char { kNone, kReads, kWrites };

struct Uses {
  std::vector<Use> inputs;   // of the variable of each input
  Use others = Use::kNone;   // of variables that are not inputs
  bool has_effects = false;  // side effects besides variables, such as printing

  bool any() const;
};

// An attribute of functions: two of the function's arguments may be the same variable.
inline constexpr char kMayHaveTwiceAttr[] = "_composite_may_have_twice";

// Finds the uses of nodes, including nodes that run functions. `library` holds these functions and
// must outlive this object.
class VariableUses {
 public:
  explicit VariableUses(const tensorflow::FunctionLibraryDefinition& library) : library_(library) {}

  Uses Of(const tensorflow::Node& node);

  // Whether two arguments of a function with unknown callers may be the same variable. A
  // tf.function captures a variable once, but a caller may pass one variable as several arguments.
  bool MayHaveTwice(const tensorflow::FunctionDef& function);

  // Whether a node of the function may pass one variable twice to a function that it runs, given
  // that all arguments of this function are different variables.
  bool GivesTwice(const tensorflow::FunctionDef& function);

 private:
  struct Described {  // a Node of a graph or a NodeDef of a function
    const std::string& op;
    const tensorflow::OpDef& op_def;
    tensorflow::AttrSlice attrs;
    const tensorflow::DataTypeVector& inputs;
  };

  Uses OfDescribed(const Described& node);
  Uses OfRun(const Described& node, const std::vector<std::string>& functions);
  // The uses of a function's arguments.
  const Uses& OfFunction(const std::string& name);
  Uses OfBody(const tensorflow::FunctionDef& function);

  const tensorflow::FunctionLibraryDefinition& library_;
  absl::flat_hash_map<std::string, Uses> functions_;
};

// Whether two arguments of `root`, or of a function that it runs, may be the same variable. The
// callers of `root` are unknown. Null: the root function is unknown.
bool MayHaveTwice(const tensorflow::FunctionDef* root,
                  const tensorflow::FunctionLibraryDefinition& library);

// Whether a node is an argument other than a variable. The caller may have computed its value after
// a write to a variable.
bool IsGivenValue(const tensorflow::Node& node);

// Whether a node runs functions. TensorFlow may inline them; each inlined node then waits for its
// own inputs and for the control inputs of this node.
bool RunsFunctions(const tensorflow::Node& node);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_USES_H_
