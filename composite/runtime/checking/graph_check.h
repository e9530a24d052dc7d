// Whether TensorFlow could run what the pass made, before anything relies on it.
#ifndef COMPOSITE_RUNTIME_CHECKING_GRAPH_CHECK_H_
#define COMPOSITE_RUNTIME_CHECKING_GRAPH_CHECK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Whether a node calls what the pass has put into the library: the function of a region, or an
// expansion.
bool CallsMadeFunction(const std::string& op, tensorflow::AttrSlice attrs);

// A copy of a graph and of its library. An error for an op that is unknown, where Graph::Copy()
// ends the process.
absl::StatusOr<std::unique_ptr<tensorflow::Graph>> CopyOf(const tensorflow::Graph& graph);

// An error that names the node unless, in the graph of a function, each input of each node has one
// edge, from an output of its dtype, names are unique, nothing waits for itself, the nodes that
// callers wait for are there, and calls of made functions fit those of `library`.
absl::Status CheckGraph(const tensorflow::FunctionDef& function, const tensorflow::Graph& graph,
                        const tensorflow::FunctionLibraryDefinition& library);

// The same of a function, which TensorFlow makes a graph of for it.
absl::Status CheckFunction(const tensorflow::FunctionDef& function,
                           const tensorflow::FunctionLibraryDefinition& library);

// Counts and logs that a function, or a session's graph if the name is empty, runs `without` what
// would make it invalid.
void NoteInvalid(absl::string_view function, absl::string_view without, const absl::Status& why);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CHECKING_GRAPH_CHECK_H_
