// Which inputs of a node never change, noted on the node: its kernel may then pack them once.
#ifndef COMPOSITE_RUNTIME_CONSTANT_INPUTS_H_
#define COMPOSITE_RUNTIME_CONSTANT_INPUTS_H_

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "composite/runtime/expand.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// `def` with the attribute kConstantsAttr that these facts give it; empty if it has that already,
// or is no node of a graph (an eager call's has no stamp). Vectors, scalars and small matrices are
// left out: nothing is gained by packing them.
absl::optional<tensorflow::NodeDef> WithConstants(const tensorflow::NodeDef& def,
                                                  absl::Span<const InputFact> facts);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CONSTANT_INPUTS_H_
