// Values that are tensors of which all parts are updated.
#ifndef COMPOSITE_RUNTIME_STACKS_STACK_H_
#define COMPOSITE_RUNTIME_STACKS_STACK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "composite/runtime/variables/update_node.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// A part of a tensor: the node that updates a slice of it, those that pick it, from the tensor on,
// and those that stack it, from the whole stack on.
struct StackPart {
  tensorflow::Node* update = nullptr;  // XlaDynamicUpdateSlice
  std::vector<tensorflow::Node*> picks, packs;
};

struct Stack {
  NodeOutput of;  // the tensor
  // The dims along which each part is one element, each a dim of what the picks before it leave,
  // and how many elements there are.
  std::vector<int64_t> axes, sizes;
  std::vector<StackPart> parts;  // in row-major order of their places
};

// The stack that a node makes, a Pack or an update; nothing if it makes none.
std::optional<Stack> StackOf(tensorflow::Node* node);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STACKS_STACK_H_
