// The order in which the nodes of a graph read and write variables.
//
// TensorFlow orders nodes by the edges of the graph alone. Two accesses conflict if they access the
// same variable and at least one writes it. Conflicting accesses are ordered if a path leads from
// one to the other; otherwise either may run first. docs/regions.md states what follows for
// additions.
#ifndef COMPOSITE_RUNTIME_VARIABLES_ACCESS_ORDER_H_
#define COMPOSITE_RUNTIME_VARIABLES_ACCESS_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "composite/runtime/variables/update_node.h"
#include "composite/runtime/variables/uses.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Tells which of some chosen nodes precede each node of a graph. Describes the graph as it was when
// this was constructed.
class Precedence {
 public:
  // Returns null if the result would need too much memory.
  static std::unique_ptr<Precedence> Of(const tensorflow::Graph& graph,
                                        const std::vector<const tensorflow::Node*>& nodes);

  // Whether a path leads from the chosen node number `one` to the node `id`. `surely`: counts only
  // paths that remain after TensorFlow inlines functions.
  bool IsBefore(size_t one, int id, bool surely) const;

 private:
  using Bits = std::vector<uint64_t>;

  std::vector<Bits> before_, surely_before_;  // by a node's id
};

class AccessOrder {
 public:
  // The graph must have no control flow nodes such as Switch and Merge. `may_have_twice`: two
  // arguments may be the same variable. The result describes the graph as it is now, also after the
  // graph changes. Returns null if the result would need too much memory.
  static std::unique_ptr<AccessOrder> Of(const tensorflow::Graph& graph, VariableUses* uses,
                                         bool may_have_twice);

  // Whether a node accesses variables or has other side effects. The functions below take only such
  // nodes.
  bool Has(const tensorflow::Node& node) const { return number_of_.contains(&node); }
  bool IsBefore(const tensorflow::Node& a, const tensorflow::Node& b) const;

  // Whether a third node for which `counts` is true may access the variable after `from` and before
  // `to`, that is, unless it precedes `from` or follows `to`. A node that may or may not access
  // this variable counts only if a path leads from `from` to it or from it to `to`.
  bool IsAccessedBetween(const NodeOutput& variable, const tensorflow::Node& from,
                         const tensorflow::Node& to,
                         absl::FunctionRef<bool(const tensorflow::Node&)> counts) const;
  bool IsWrittenBetween(const NodeOutput& variable, const tensorflow::Node& from,
                        const tensorflow::Node& to) const;

  // Whether some node writes the variable without being ordered with `access`.
  bool IsWrittenMeanwhile(const NodeOutput& variable, const tensorflow::Node& access) const;

  // Returns the nodes that precede `access` and may write the variable, and the arguments that
  // precede it, because the caller may compute an argument after such a write. Leaves out the nodes
  // that the control inputs of `access` already wait for.
  std::vector<tensorflow::Node*> WritersBefore(const NodeOutput& variable,
                                               const tensorflow::Node& access) const;

  // Lets `by` take the place of a node; null removes the node's accesses.
  void Replace(const tensorflow::Node* node, tensorflow::Node* by);

  // Adds control edges to the changed graph so that conflicting accesses keep their order, and each
  // result still waits for the accesses that it waited for.
  absl::Status Restore(tensorflow::Graph* graph) const;

 private:
  struct Access {
    tensorflow::Node* node;  // null: the node was removed
    int id;                  // of the original node
    std::vector<std::pair<NodeOutput, Use>> variables;
    Use others;
    bool has_effects;
    bool is_argument;  // see IsGivenValue
  };
  enum class Same { kNo, kMaybe, kYes };

  AccessOrder(VariableUses* uses, bool may_have_twice, const tensorflow::Graph& graph);

  Same AreSame(const NodeOutput& a, const NodeOutput& b) const;
  // How an access uses a variable, and whether it certainly accesses that variable.
  std::pair<Use, Same> UseOf(const Access& access, const NodeOutput& variable) const;
  bool AreInConflict(const Access& a, const Access& b) const;
  bool IsBetween(int access, Same same, int from, int to) const;
  bool IsBefore(int a, int b, bool surely) const;
  int NumberOf(const tensorflow::Node& node) const { return number_of_.at(&node); }
  absl::Status RestoreResult(const std::vector<tensorflow::Node*>& before, tensorflow::Node* result,
                             tensorflow::Graph* graph) const;

  const bool may_have_twice_;
  std::vector<Access> accesses_;
  absl::flat_hash_map<const tensorflow::Node*, int> number_of_;
  std::unique_ptr<Precedence> then_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_ACCESS_ORDER_H_
