#include "composite/runtime/variables/access_order.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

constexpr size_t kBits = 64;
constexpr size_t kMostWords = size_t{1} << 24;  // of all nodes

// What a node is given, behind nodes that give on what they are given.
NodeOutput InputOf(const Node& node, int input) {
  const Edge* edge = nullptr;
  if (!node.input_edge(input, &edge).ok()) return {};
  while (edge->src()->IsIdentity() && edge->src()->input_edge(0, &edge).ok()) {
  }
  return {edge->src(), edge->src_output()};
}

// The variable that a node names; "" where it has one of its own.
std::string NamedBy(const Node& handle) {
  std::string name, container;
  tensorflow::TryGetNodeAttr(handle.attrs(), "shared_name", &name);
  tensorflow::TryGetNodeAttr(handle.attrs(), "container", &container);
  return name.empty() ? name : container + "/" + name;
}

}  // namespace

std::unique_ptr<Precedence> Precedence::Of(const Graph& graph,
                                           const std::vector<const Node*>& nodes) {
  const size_t words = (nodes.size() + kBits - 1) / kBits;
  if (words * graph.num_node_ids() > kMostWords) return nullptr;
  absl::flat_hash_map<const Node*, size_t> number_of;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] != nullptr) number_of[nodes[i]] = i;
  }
  auto made = std::make_unique<Precedence>();
  made->before_.resize(graph.num_node_ids());
  made->surely_before_.resize(graph.num_node_ids());
  std::vector<Node*> order;
  tensorflow::GetReversePostOrder(graph, &order);
  std::vector<bool> runs(graph.num_node_ids());
  for (const Node* node : order) runs[node->id()] = node->IsOp() && RunsFunctions(*node);
  for (const Node* node : order) {
    Bits &before = made->before_[node->id()], &surely = made->surely_before_[node->id()];
    before.resize(words);
    surely.resize(words);
    const auto add = [&](const std::vector<Bits>& rows, const Node* source, Bits* row) {
      for (size_t w = 0; w < words; ++w) (*row)[w] |= rows[source->id()][w];
      const auto own = number_of.find(source);
      if (own != number_of.end()) (*row)[own->second / kBits] |= 1ull << own->second % kBits;
    };
    for (const Edge* edge : node->in_edges()) {
      const Node* source = edge->src();
      if (!source->IsOp()) continue;
      add(made->before_, source, &before);
      const bool stays = edge->IsControlEdge() || !(runs[source->id()] || runs[node->id()]);
      if (stays) add(made->surely_before_, source, &surely);
    }
  }
  return made;
}

bool Precedence::IsBefore(size_t one, int id, bool surely) const {
  const std::vector<Bits>& rows = surely ? surely_before_ : before_;
  if (static_cast<size_t>(id) >= rows.size() || rows[id].empty()) return false;
  return (rows[id][one / kBits] >> one % kBits & 1) != 0;
}

AccessOrder::AccessOrder(VariableUses* uses, bool may_have_twice, const Graph& graph)
    : may_have_twice_(may_have_twice) {
  std::vector<const Node*> nodes;
  for (Node* node : graph.op_nodes()) {
    const Uses own = uses->Of(*node);
    const bool is_argument = IsGivenValue(*node);
    if (!own.any() && !is_argument) continue;
    Access access = {node, node->id(), {}, own.others, own.has_effects, is_argument};
    for (size_t i = 0; i < own.inputs.size(); ++i) {
      if (own.inputs[i] == Use::kNone) continue;
      access.variables.emplace_back(InputOf(*node, static_cast<int>(i)), own.inputs[i]);
    }
    number_of_[node] = static_cast<int>(accesses_.size());
    nodes.push_back(node);
    accesses_.push_back(std::move(access));
  }
  then_ = Precedence::Of(graph, nodes);
}

std::unique_ptr<AccessOrder> AccessOrder::Of(const Graph& graph, VariableUses* uses,
                                             bool may_have_twice) {
  std::unique_ptr<AccessOrder> order(new AccessOrder(uses, may_have_twice, graph));
  return order->then_ == nullptr ? nullptr : std::move(order);
}

bool AccessOrder::IsBefore(int a, int b, bool surely) const {
  return then_->IsBefore(a, accesses_[b].id, surely);
}

bool AccessOrder::IsBefore(const Node& a, const Node& b) const {
  return IsBefore(NumberOf(a), NumberOf(b), /*surely=*/true);
}

AccessOrder::Same AccessOrder::AreSame(const NodeOutput& a, const NodeOutput& b) const {
  if (a == b) return Same::kYes;
  if (a.first == nullptr || b.first == nullptr) return Same::kMaybe;
  if (a.first->IsArg() && b.first->IsArg()) return may_have_twice_ ? Same::kMaybe : Same::kNo;
  const auto is_handle = [](const Node* node) { return node->type_string() == "VarHandleOp"; };
  if (!is_handle(a.first) || !is_handle(b.first)) return Same::kMaybe;
  const std::string name = NamedBy(*a.first);
  return name.empty() || name != NamedBy(*b.first) ? Same::kNo : Same::kYes;
}

std::pair<Use, AccessOrder::Same> AccessOrder::UseOf(const Access& access,
                                                     const NodeOutput& variable) const {
  std::pair<Use, Same> found = {access.others,
                                access.others == Use::kNone ? Same::kNo : Same::kMaybe};
  for (const auto& [own, use] : access.variables) {
    const Same same = AreSame(own, variable);
    if (same == Same::kNo) continue;
    found = {std::max(found.first, use), std::max(found.second, same)};
  }
  return found;
}

bool AccessOrder::AreInConflict(const Access& a, const Access& b) const {
  if (a.has_effects && b.has_effects) return true;
  const auto has_variables = [](const Access& access) {
    return access.others != Use::kNone || !access.variables.empty();
  };
  const auto writes_others = [&](const Access& one, const Access& other) {
    return one.others == Use::kWrites && has_variables(other);
  };
  if (writes_others(a, b) || writes_others(b, a)) return true;
  return absl::c_any_of(a.variables, [&](const auto& own) {
    const auto [use, same] = UseOf(b, own.first);
    return same != Same::kNo && (use == Use::kWrites || own.second == Use::kWrites);
  });
}

bool AccessOrder::IsBetween(int access, Same same, int from, int to) const {
  if (access == from || access == to || same == Same::kNo) return false;
  if (IsBefore(access, from, true) || IsBefore(to, access, true)) return false;
  return same == Same::kYes || IsBefore(access, to, false) || IsBefore(from, access, false);
}

bool AccessOrder::IsAccessedBetween(const NodeOutput& variable, const Node& from, const Node& to,
                                    absl::FunctionRef<bool(const Node&)> counts) const {
  for (size_t i = 0; i < accesses_.size(); ++i) {
    const Access& access = accesses_[i];
    if (access.node == nullptr || !counts(*access.node)) continue;
    const Same same = UseOf(access, variable).second;
    if (IsBetween(static_cast<int>(i), same, NumberOf(from), NumberOf(to))) return true;
  }
  return false;
}

bool AccessOrder::IsWrittenBetween(const NodeOutput& variable, const Node& from,
                                   const Node& to) const {
  return IsAccessedBetween(variable, from, to, [&](const Node& node) {
    return UseOf(accesses_[NumberOf(node)], variable).first == Use::kWrites;
  });
}

bool AccessOrder::IsWrittenMeanwhile(const NodeOutput& variable, const Node& access) const {
  const int own = NumberOf(access);
  for (int i = 0; i < static_cast<int>(accesses_.size()); ++i) {
    const auto [use, same] = UseOf(accesses_[i], variable);
    if (i == own || use != Use::kWrites || same != Same::kYes) continue;
    if (!IsBefore(i, own, true) && !IsBefore(own, i, true)) return true;
  }
  return false;
}

std::vector<Node*> AccessOrder::WritersBefore(const NodeOutput& variable,
                                              const Node& access) const {
  const int own = NumberOf(access);
  const std::vector<Node*> waits_for = WaitsFor(access);
  std::vector<Node*> writers;
  for (int i = 0; i < static_cast<int>(accesses_.size()); ++i) {
    Node* node = accesses_[i].node;
    const bool writes = UseOf(accesses_[i], variable).first == Use::kWrites;
    if (node == nullptr || !(writes || accesses_[i].is_argument)) continue;
    if (!IsBefore(i, own, false)) continue;
    const bool is_behind = absl::c_any_of(waits_for, [&](const Node* waited) {
      const auto known = number_of_.find(waited);
      const int id = known == number_of_.end() ? waited->id() : accesses_[known->second].id;
      return waited == node || then_->IsBefore(i, id, true);
    });
    if (!is_behind) writers.push_back(node);
  }
  return writers;
}

void AccessOrder::Replace(const Node* node, Node* by) {
  const auto found = number_of_.find(node);
  if (found == number_of_.end()) return;
  const int number = found->second;
  number_of_.erase(found);
  accesses_[number].node = by;
  if (by != nullptr) number_of_[by] = number;
}

absl::Status AccessOrder::RestoreResult(const std::vector<Node*>& before, Node* result,
                                        Graph* graph) const {
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(result->input_edge(0, &edge));
  Node* behind = nullptr;
  TF_RETURN_IF_ERROR(Like(*edge->src(), graph->NewName("composite_result"), "Identity")
                         .Input(edge->src(), edge->src_output())
                         .ControlInputs(before)
                         .Finalize(graph, &behind));
  MoveEdge(edge, {behind, 0}, graph);
  return absl::OkStatus();
}

absl::Status AccessOrder::Restore(Graph* graph) const {
  std::vector<const Node*> nodes;
  for (const Access& access : accesses_) nodes.push_back(access.node);
  const std::unique_ptr<Precedence> now = Precedence::Of(*graph, nodes);
  if (now == nullptr) return absl::ResourceExhaustedError("the order of accesses is too large");
  const auto counts = [](const Node* node) {
    // What nobody reads is read at any time.
    return node != nullptr && (node->type_string() != kReadOp ||
                               !absl::c_all_of(node->out_edges(), [](const Edge* edge) {
                                 return edge->IsControlEdge();
                               }));
  };
  std::vector<bool> counted;
  for (const Access& access : accesses_) {
    counted.push_back(!access.is_argument && counts(access.node));
  }
  const auto is_lost = [&](size_t one, int id_then, int id_now) {
    const auto is_lost_path = [&](bool surely) {
      return then_->IsBefore(one, id_then, surely) && !now->IsBefore(one, id_now, surely);
    };
    return counted[one] && (is_lost_path(false) || is_lost_path(true));
  };
  for (const Access& access : accesses_) {
    if (access.node == nullptr || !counts(access.node)) continue;
    for (size_t one = 0; one < accesses_.size(); ++one) {
      if (is_lost(one, access.id, access.node->id()) && AreInConflict(accesses_[one], access)) {
        graph->AddControlEdge(accesses_[one].node, access.node);
      }
    }
  }
  std::vector<std::pair<Node*, std::vector<Node*>>> results;
  for (Node* node : graph->op_nodes()) {
    if (!node->IsRetval()) continue;
    std::vector<Node*> before;
    for (size_t one = 0; one < accesses_.size(); ++one) {
      if (is_lost(one, node->id(), node->id())) before.push_back(accesses_[one].node);
    }
    if (!before.empty()) results.emplace_back(node, std::move(before));
  }
  for (const auto& [node, before] : results) {
    TF_RETURN_IF_ERROR(RestoreResult(before, node, graph));
  }
  return absl::OkStatus();
}

}  // namespace composite
