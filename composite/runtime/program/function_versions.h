// The functions that CompositeCall nodes call, as versions of that op.
//
// A function is named by a hash of what it computes; a process that meets a node in a loaded model
// takes the function from the model.
#ifndef COMPOSITE_RUNTIME_PROGRAM_FUNCTION_VERSIONS_H_
#define COMPOSITE_RUNTIME_PROGRAM_FUNCTION_VERSIONS_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Makes function[0] a version of kFunctionOp, under its name; the others are what it reaches.
// Nothing when the name is known. InvalidArgument: it is malformed, calls an unknown op, or keeps
// state.
absl::Status RegisterFunction(const tensorflow::FunctionDefLibrary& library);

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

#endif  // COMPOSITE_RUNTIME_PROGRAM_FUNCTION_VERSIONS_H_
