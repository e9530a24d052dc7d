#include "composite/runtime/stacks/picks.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::Tensor;

// The elements of a constant vector that an input is.
std::optional<Tensor> Constant(const Node& node, int input) {
  const Edge* edge = nullptr;
  const tensorflow::TensorProto* proto = nullptr;
  if (!node.input_edge(input, &edge).ok() || !edge->src()->IsConstant() ||
      !tensorflow::TryGetNodeAttr(edge->src()->attrs(), "value", &proto)) {
    return std::nullopt;
  }
  Tensor value;
  if (!value.FromProto(*proto) || value.dims() != 1) return std::nullopt;
  return value;
}

class Masks {
 public:
  explicit Masks(const Node& node) : node_(node) {}

  bool Has(const char* name, int i) const {
    int64_t mask = 0;
    return tensorflow::TryGetNodeAttr(node_.attrs(), name, &mask) && (mask >> i & 1) != 0;
  }

 private:
  const Node& node_;
};

}  // namespace

int64_t IndexAt(const Tensor& vector, int i) {
  return vector.dtype() == tensorflow::DT_INT64 ? vector.flat<int64_t>()(i)
                                                : vector.flat<int32_t>()(i);
}

std::optional<Pick> PickOf(const Node& node) {
  if (node.type_string() != "StridedSlice") return std::nullopt;
  const std::optional<Tensor> begin = Constant(node, 1), strides = Constant(node, 3);
  if (!begin || !strides) return std::nullopt;
  const Masks masks(node);
  const int count = static_cast<int>(begin->NumElements());
  std::optional<Pick> found;
  for (int i = 0; i < count; ++i) {
    if (masks.Has("new_axis_mask", i)) return std::nullopt;
    if (masks.Has("ellipsis_mask", i)) {
      if (!found) return std::nullopt;  // which dimension follows depends on the rank
      continue;
    }
    if (masks.Has("shrink_axis_mask", i)) {
      const int64_t place = IndexAt(*begin, i);
      if (found || place < 0) return std::nullopt;
      found = Pick{i, place};
      continue;
    }
    const bool is_whole = masks.Has("begin_mask", i) && masks.Has("end_mask", i);
    if (!is_whole || IndexAt(*strides, i) != 1) return std::nullopt;
  }
  return found;
}

}  // namespace composite
