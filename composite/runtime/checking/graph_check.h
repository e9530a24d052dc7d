// Whether TensorFlow could run what the pass made, before anything relies on it.
#ifndef COMPOSITE_RUNTIME_CHECKING_GRAPH_CHECK_H_
#define COMPOSITE_RUNTIME_CHECKING_GRAPH_CHECK_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// An error that names the node unless, in the graph of a function, each input of each node has one
// edge, from an output of its dtype, names are unique, nothing waits for itself, the nodes that
// callers wait for are there, and the calls of regions fit functions of `library`.
absl::Status CheckGraph(const tensorflow::FunctionDef& function, const tensorflow::Graph& graph,
                        const tensorflow::FunctionLibraryDefinition& library);

// The same of a function, which TensorFlow makes a graph of for it.
absl::Status CheckFunction(const tensorflow::FunctionDef& function,
                           const tensorflow::FunctionLibraryDefinition& library);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CHECKING_GRAPH_CHECK_H_
