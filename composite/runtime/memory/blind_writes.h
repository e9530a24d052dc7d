// Ops of TensorFlow that write to their input whoever else holds it.
#ifndef COMPOSITE_RUNTIME_MEMORY_BLIND_WRITES_H_
#define COMPOSITE_RUNTIME_MEMORY_BLIND_WRITES_H_

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Notes whether a graph, or a function that it may call, has such an op. Must be asked before the
// graph runs. `library` may be null.
void NoteBlindWritesIn(const tensorflow::Graph& graph,
                       const tensorflow::FunctionLibraryDefinition* library);

// Whether one did.
bool HasBlindWrites();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_BLIND_WRITES_H_
