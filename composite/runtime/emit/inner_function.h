// Functions inside of an expansion while they are made: the branches of an If, the condition and
// the body of a While. What they use of the graph around them becomes their inputs.
#ifndef COMPOSITE_RUNTIME_EMIT_INNER_FUNCTION_H_
#define COMPOSITE_RUNTIME_EMIT_INNER_FUNCTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/graph/graph_builder.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

struct InnerFunction {
  explicit InnerFunction(Emitter* outer)
      : graph(&outer->graph()), emitter(&graph, *outer), outer(*outer) {}

  GraphBuilder graph;
  Emitter emitter;
  Emitter& outer;
};

// The outer tensors that some of the functions use: what all of them take, in this order.
std::vector<TensorValue> AllCaptures(absl::Span<InnerFunction* const> functions);

// Ends a function and adds it to the outer graph; the attribute that refers to it. `stem` is the
// beginning of its name.
absl::StatusOr<tensorflow::AttrValue> FinishInner(const std::string& stem,
                                                  absl::Span<const TensorValue> arguments,
                                                  absl::Span<const TensorValue> results,
                                                  InnerFunction* function);

// A node of If, While or their stateless twins in the outer graph.
absl::StatusOr<std::vector<TensorValue>> AddControlNode(tensorflow::NodeDef def,
                                                        absl::Span<const TensorValue> inputs,
                                                        absl::Span<InnerFunction* const> functions);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_INNER_FUNCTION_H_
