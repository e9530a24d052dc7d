// CompositeCall(f): the op for whatever has no name of its own, a derived gradient for one.
//
// Its nodes run a TensorFlow function as those of a composite run their expansion, kernels
// included. The function is a version of the op, named by a hash of what it computes; a process
// that meets a node in a loaded model takes the function from the model.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_OP_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_OP_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

inline constexpr char kFunctionOp[] = "CompositeCall";
inline constexpr char kFunctionAttr[] = "f";

// The attribute by which nodes of this op say their version: the program's digest, or the function.
const char* VersionAttr(absl::string_view op_name);

// The version that the attribute names; "" where there is none.
absl::string_view VersionOf(const tensorflow::AttrValue* version_attr);

// Makes the function of a node of kFunctionOp a version, if it is in the library and is none yet.
// Other nodes are left alone.
absl::Status LearnFunction(const tensorflow::NodeDef& node,
                           const tensorflow::FunctionLibraryDefinition& library);

// The same for all nodes of a graph, and of a function.
absl::Status LearnFunctions(const tensorflow::Graph& graph,
                            const tensorflow::FunctionLibraryDefinition& library);
absl::Status LearnFunctions(const tensorflow::FunctionDef& function,
                            const tensorflow::FunctionLibraryDefinition& library);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_FUNCTION_OP_H_
