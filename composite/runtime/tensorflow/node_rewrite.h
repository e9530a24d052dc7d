// What the graph pass makes of one node, whether it is a Graph's or a FunctionDef's.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_NODE_REWRITE_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_NODE_REWRITE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/tensorflow/composition.h"
#include "composite/runtime/tensorflow/constant_inputs.h"
#include "composite/runtime/tensorflow/final_call.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

struct NodeRewrite {
  // The composite that is there now: the node with its stamps, or the composition in its place.
  tensorflow::NodeDef composite;
  bool is_composition = false;
  bool is_stamped = false;
  // Of a final verdict: a call of it (CallNode) takes the composite's place. Null to leave that.
  std::shared_ptr<const Expansion> expansion;
};

// How the nodes of one graph are rewritten.
struct RewriteOptions {
  bool compositions = false;  // whether they take the place of TF's ops
  NodeContext context = NodeContext::kGraph;
  bool of_xla = false;  // XLA compiles them, and chooses between kernels and expansions itself
  Devices devices;
};

using SourcesOfNode = absl::FunctionRef<InputSources(const tensorflow::NodeDef&)>;

// Whether a node of this op can be rewritten: it is a composite, or may become one.
bool MayRewrite(const std::string& op, const RewriteOptions& options);

// Empty for a node that is no composite and becomes none.
absl::optional<NodeRewrite> RewriteNode(const tensorflow::NodeDef& node,
                                        const RewriteOptions& options, FactsOfNode facts,
                                        SourcesOfNode sources);

// Where a value comes from, seen through Identity, which a frozen variable is. `before(value)` is
// what the Identity that gives a value reads; empty where none gives it. A graph that was loaded
// may be damaged, and its Identities come to themselves: the walk ends after as many steps as there
// are `nodes`.
template <typename Value, typename Before>
Value Origin(Value value, size_t nodes, const Before& before) {
  for (size_t steps = 0; steps < nodes; ++steps) {
    absl::optional<Value> read = before(value);
    if (!read.has_value()) break;
    value = *std::move(read);
  }
  return value;
}

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_NODE_REWRITE_H_
