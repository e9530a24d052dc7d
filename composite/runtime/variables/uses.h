// What nodes do to variables.
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
  std::vector<Use> inputs;   // of the variables that it is given, by the places of its inputs
  Use others = Use::kNone;   // of variables that it is not given
  bool has_effects = false;  // that are of no variable, such as lines that it prints

  bool any() const;
};

// On functions: one of their variables may be another one, too.
inline constexpr char kMayHaveTwiceAttr[] = "_composite_may_have_twice";

// Finds out what nodes do, those included that run functions. `library` has these, and has to
// outlive this.
class VariableUses {
 public:
  explicit VariableUses(const tensorflow::FunctionLibraryDefinition& library) : library_(library) {}

  Uses Of(const tensorflow::Node& node);

  // Whether two arguments of a function that anybody may call may be one variable. A tf.function
  // captures a variable once; of what its callers give it, nothing is known.
  bool MayHaveTwice(const tensorflow::FunctionDef& function);

  // Whether a node may give one variable twice to a function that it runs, where no two arguments
  // of its own function are one.
  bool GivesTwice(const tensorflow::FunctionDef& function);

 private:
  struct Described {  // a node of a graph or of a function
    const std::string& op;
    const tensorflow::OpDef& op_def;
    tensorflow::AttrSlice attrs;
    const tensorflow::DataTypeVector& inputs;
  };

  Uses OfDescribed(const Described& node);
  Uses OfRun(const Described& node, const std::vector<std::string>& functions);
  // Of a function, by its arguments.
  const Uses& OfFunction(const std::string& name);
  Uses OfBody(const tensorflow::FunctionDef& function);

  const tensorflow::FunctionLibraryDefinition& library_;
  absl::flat_hash_map<std::string, Uses> functions_;
};

// Whether two arguments of a function may be one variable: of `root`, which anybody may call, or
// null where nobody knows who does, or of those that it runs.
bool MayHaveTwice(const tensorflow::FunctionDef* root,
                  const tensorflow::FunctionLibraryDefinition& library);

// Whether a node gives what the function's caller computed, maybe of what others wrote before: all
// arguments but the variables, which are there from the start.
bool IsGivenValue(const tensorflow::Node& node);

// Whether a node runs functions. TensorFlow may put their nodes in its place; each of these waits
// for what it reads, and for what the node waits for by control edges.
bool RunsFunctions(const tensorflow::Node& node);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_USES_H_
