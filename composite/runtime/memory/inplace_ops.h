// TensorFlow's ops that write to their input even where others hold its buffer.
#ifndef COMPOSITE_RUNTIME_MEMORY_INPLACE_OPS_H_
#define COMPOSITE_RUNTIME_MEMORY_INPLACE_OPS_H_

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Records whether a graph, or a function of `library` that it reaches, has such an op. Must be
// called before the graph runs.
void NoteInplaceOps(const tensorflow::Graph& graph,
                    const tensorflow::FunctionLibraryDefinition& library);

// Whether any graph of the process has one.
bool HasInplaceOps();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_INPLACE_OPS_H_
