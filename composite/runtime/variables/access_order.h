// In which order the nodes of a graph read and write variables.
//
// TensorFlow has no order of them but the edges of the graph. Two accesses to one variable, of
// which one writes, are ordered where a path leads from one to the other; where none does, either
// may be the first. docs/regions.md states what follows for additions.
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

// Which of some nodes are before the nodes of a graph, as it is when this is made.
class Precedence {
 public:
  // Null where this would take too much memory.
  static std::unique_ptr<Precedence> Of(const tensorflow::Graph& graph,
                                        const std::vector<const tensorflow::Node*>& nodes);

  // Whether a path leads from one of those nodes to the node with this id; `surely`: one that stays
  // where TensorFlow puts the nodes of functions in the places of the nodes that run them.
  bool IsBefore(size_t one, int id, bool surely) const;

 private:
  using Bits = std::vector<uint64_t>;

  std::vector<Bits> before_, surely_before_;  // by a node's id
};

class AccessOrder {
 public:
  // Of a graph without Switch, Merge and the like. `may_have_twice`: two arguments may be one
  // variable. The order stays that of now when the graph changes. Null where finding it would take
  // too much memory.
  static std::unique_ptr<AccessOrder> Of(const tensorflow::Graph& graph, VariableUses* uses,
                                         bool may_have_twice);

  // Whether it has a node, one that accesses variables or has other effects. The nodes below are
  // such nodes.
  bool Has(const tensorflow::Node& node) const { return number_of_.contains(&node); }
  bool IsBefore(const tensorflow::Node& a, const tensorflow::Node& b) const;

  // Whether a node that `counts` has, another one, accesses a variable after `from` and before
  // `to`: it may be neither before `from` nor behind `to`. A node of which nobody knows whether it
  // has the variable counts where a path leads to `to` or from `from`: or else TensorFlow has no
  // order.
  bool IsAccessedBetween(const NodeOutput& variable, const tensorflow::Node& from,
                         const tensorflow::Node& to,
                         absl::FunctionRef<bool(const tensorflow::Node&)> counts) const;
  bool IsWrittenBetween(const NodeOutput& variable, const tensorflow::Node& from,
                        const tensorflow::Node& to) const;

  // Whether a node writes to the variable of an access, and no path says which is first.
  bool IsWrittenMeanwhile(const NodeOutput& variable, const tensorflow::Node& access) const;

  // The nodes before an access that may write to the variable, and arguments before it, that the
  // function's caller may have computed behind such a node; without those that what the access
  // waits for by control edges is, or is behind.
  std::vector<tensorflow::Node*> WritersBefore(const NodeOutput& variable,
                                               const tensorflow::Node& access) const;

  // Has `by` access what a node did; null for no one.
  void Replace(const tensorflow::Node* node, tensorflow::Node* by);

  // Adds control edges to the graph, which has changed, so that accesses of which one writes to
  // what the other one may have are ordered as they were, and results are behind the accesses that
  // they were behind.
  absl::Status Restore(tensorflow::Graph* graph) const;

 private:
  struct Access {
    tensorflow::Node* node;  // null: there is none any more
    int id;                  // of the node that it was of first
    std::vector<std::pair<NodeOutput, Use>> variables;
    Use others;
    bool has_effects;
    bool is_argument;  // it does nothing itself, see IsGivenValue
  };
  enum class Same { kNo, kMaybe, kYes };

  AccessOrder(VariableUses* uses, bool may_have_twice, const tensorflow::Graph& graph);

  Same AreSame(const NodeOutput& a, const NodeOutput& b) const;
  // What an access does to a variable, and whether it is known to have that one.
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
