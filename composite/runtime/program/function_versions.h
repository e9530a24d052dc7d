// The functions that CompositeCall nodes call, as versions of that op.
//
// A function is named by a hash of what it computes; a process that meets a node in a loaded model
// takes the function from the model. A function that was altered since (by a tool that edits
// graphs, or by TensorFlow's optimizer on its way to another process) has the name of what it was:
// it is never taken for that, nor that for it.
#ifndef COMPOSITE_RUNTIME_PROGRAM_FUNCTION_VERSIONS_H_
#define COMPOSITE_RUNTIME_PROGRAM_FUNCTION_VERSIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// On a node of kFunctionOp that the graph pass of this process has seen: which version it means.
// TensorFlow's optimizer, which comes next, changes the functions of a graph under their names.
inline constexpr char kMeansAttr[] = "_composite_means";

// Whether a node's function is not known to be the version of its name, by what it has of
// kMeansAttr and kFunctionAttr: nothing is known of it before it runs. Not of a node that has no
// kMeansAttr.
bool IsAltered(const tensorflow::AttrValue* means, const tensorflow::AttrValue* function);
bool IsAltered(tensorflow::AttrSlice attrs);

// Makes function[0] a version of kFunctionOp, under its name; the others are what it reaches.
// Nothing when the name is known. InvalidArgument: it is malformed, calls an unknown op, keeps
// state, or is not what its name stands for.
absl::Status RegisterFunction(const tensorflow::FunctionDefLibrary& library);

// Makes the function of a node of kFunctionOp a version, if it is in the library and is none yet.
// If it is not what its name stands for, the version has a name of its own, and a node that calls
// it by that is returned, to take the given one's place. Other nodes are left alone.
absl::StatusOr<absl::optional<tensorflow::NodeDef>> LearnFunction(
    const tensorflow::NodeDef& node, const tensorflow::FunctionLibraryDefinition& library);

// The same for all nodes of a graph, and of a function: those of kFunctionOp get their marks.
absl::Status LearnFunctions(const tensorflow::FunctionLibraryDefinition& library,
                            tensorflow::Graph* graph);
// Empty: there is none.
absl::StatusOr<absl::optional<tensorflow::FunctionDef>> LearnFunctions(
    const tensorflow::FunctionLibraryDefinition& library, const tensorflow::FunctionDef& function);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_FUNCTION_VERSIONS_H_
