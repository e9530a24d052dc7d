#include "composite/runtime/stacks/stack.h"

#include <utility>

#include "composite/runtime/stacks/picks.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// What an input of a node comes from; null for an input that no node gives.
const Edge* InputOf(const Node& node, int input) {
  const Edge* edge = nullptr;
  return node.input_edge(input, &edge).ok() ? edge : nullptr;
}

// The stack whose parts the operands of a Pack are.
std::optional<Stack> StackOfPack(Node* pack) {
  int64_t axis = 0;
  if (!tensorflow::GetNodeAttr(pack->attrs(), "axis", &axis).ok() || axis < 0) return std::nullopt;
  Stack whole;
  for (int i = 0; i < pack->num_inputs(); ++i) {
    const Edge* operand = InputOf(*pack, i);
    std::optional<Stack> part = operand == nullptr ? std::nullopt : StackOf(operand->src());
    if (!part) return std::nullopt;
    Node* picked = part->of.first;
    const std::optional<Pick> pick = PickOf(*picked);
    const Edge* from = pick ? InputOf(*picked, 0) : nullptr;
    if (from == nullptr || pick->axis != axis || pick->place != i) return std::nullopt;
    if (i == 0) {
      whole = {OutputOf(*from), part->axes, part->sizes, {}};
    } else if (whole.of != OutputOf(*from) || whole.axes != part->axes ||
               whole.sizes != part->sizes) {
      return std::nullopt;
    }
    for (StackPart& one : part->parts) {
      one.picks.insert(one.picks.begin(), picked);
      one.packs.insert(one.packs.begin(), pack);
      whole.parts.push_back(std::move(one));
    }
  }
  whole.axes.insert(whole.axes.begin(), axis);
  whole.sizes.insert(whole.sizes.begin(), pack->num_inputs());
  return whole;
}

}  // namespace

std::optional<Stack> StackOf(Node* node) {
  if (node->attrs().Find("_class") != nullptr) return std::nullopt;  // somebody says where it runs
  if (node->type_string() == "Pack") return StackOfPack(node);
  const Edge* of = node->type_string() == "XlaDynamicUpdateSlice" ? InputOf(*node, 0) : nullptr;
  if (of == nullptr) return std::nullopt;
  return Stack{OutputOf(*of), {}, {}, {{node, {}, {}}}};
}

}  // namespace composite
