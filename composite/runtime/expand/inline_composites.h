// The nodes of a function that are composites, expanded where they stand: one graph of stock ops,
// for the kernel compiler.
#ifndef COMPOSITE_RUNTIME_EXPAND_INLINE_COMPOSITES_H_
#define COMPOSITE_RUNTIME_EXPAND_INLINE_COMPOSITES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// Whether nodes of the function itself are composites. Those in branches and loops are left alone.
bool HasComposites(const tensorflow::FunctionDef& function);

// Adds the nodes of a function to a graph, those of its composites in the places of these. Nodes
// keep their names; the name of a node that came with "n3" begins with "n3/". Returns the results.
// Errors have kNodePayload.
absl::StatusOr<std::vector<TensorValue>> InlineComposites(const Expansion& function,
                                                          absl::Span<const TensorValue> inputs,
                                                          Emitter* emitter);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_INLINE_COMPOSITES_H_
