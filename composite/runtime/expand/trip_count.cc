#include "composite/runtime/expand/trip_count.h"

#include <cstdint>
#include <utility>

#include "absl/types/optional.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {
namespace {

using tensorflow::Node;

TensorValue Operand(const Node* node, int index) {
  const tensorflow::Edge* edge = nullptr;
  if (!node->input_edge(index, &edge).ok()) return {};
  return {edge->src(), edge->src_output(), edge->src()->output_type(edge->src_output()), false, {}};
}

bool IsSame(const TensorValue& a, const TensorValue& b) {
  return a.node == b.node && a.index == b.index;
}

absl::optional<int64_t> ConstantInt(const TensorValue& tensor) {
  tensorflow::Tensor value;
  if (tensor.node == nullptr || !tensor.node->IsConstant() ||
      !GetNodeAttr(tensor.node->attrs(), "value", &value).ok() || value.NumElements() != 1) {
    return absl::nullopt;
  }
  if (value.dtype() == tensorflow::DT_INT32) return value.flat<int32_t>()(0);
  if (value.dtype() == tensorflow::DT_INT64) return value.flat<int64_t>()(0);
  return absl::nullopt;
}

// Whether `next` is `entered` + 1.
bool CountsUp(const TensorValue& entered, const TensorValue& next) {
  if (next.node->type_string() != "AddV2") return false;
  const TensorValue left = Operand(next.node, 0), right = Operand(next.node, 1);
  return (IsSame(left, entered) && ConstantInt(right) == 1) ||
         (IsSame(right, entered) && ConstantInt(left) == 1);
}

}  // namespace

Value MaxIterations(const TensorValue& predicate, const LoopVariables& variables,
                    const GraphBuilder& condition) {
  if (predicate.node->type_string() != "Less") return Value::Int(-1);
  const TensorValue counter = Operand(predicate.node, 0), limit = Operand(predicate.node, 1);
  for (size_t i = 0; i < variables.parameters.size(); ++i) {
    if (!IsSame(variables.parameters[i], counter)) continue;
    const absl::optional<int64_t> start = ConstantInt(variables.started[i]);
    if (!start.has_value() || *start < 0) break;
    if (!CountsUp(variables.entered[i], variables.next[i])) break;
    if (absl::optional<int64_t> known = ConstantInt(limit)) return Value::Int(*known);
    TensorValue outer = condition.Origin(limit);
    const bool is_integer =
        outer.dtype == tensorflow::DT_INT32 || outer.dtype == tensorflow::DT_INT64;
    if (IsSame(outer, limit) || !is_integer) break;  // computed in each trip
    outer.weak = false;
    return Value::Tensor(std::move(outer));
  }
  return Value::Int(-1);
}

}  // namespace composite
