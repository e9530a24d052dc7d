#include "composite/runtime/expand/carried_values.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/graph/common_shape.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::PartialTensorShape;

PartialTensorShape ShapeOf(const Value& part, GraphBuilder* graph) {
  if (part.as_constant() != nullptr) return part.as_constant()->shape();
  if (part.as_tensor() != nullptr && !part.is_weak()) return graph->Inferred(*part.as_tensor());
  return PartialTensorShape(std::vector<int64_t>{});  // a number
}

ListShape ListOf(const Value& part, const GraphBuilder& graph) {
  return part.as_tensor() == nullptr ? ListShape() : graph.List(*part.as_tensor());
}

}  // namespace

CarriedValues::CarriedValues(std::vector<Value> starts, Emitter* outer)
    : starts_(std::move(starts)) {
  for (const Value& start : starts_) {
    Value::List parts;
    AppendParts(start, &parts);
    std::vector<Part>& own = parts_.emplace_back();
    for (Value& part : parts) {
      Part& added = own.emplace_back();
      added.type = TypeOf(part);
      added.has_shape = !part.is_undefined();
      if (added.has_shape) added.shape = ShapeOf(part, &outer->graph());
      added.list = ListOf(part, outer->graph());
      added.start = std::move(part);
    }
  }
}

absl::StatusOr<std::vector<Value>> CarriedValues::Enter(InnerFunction* function) {
  for (auto& parts : parts_) {
    for (Part& part : parts) {
      if (!part.type.is_tensor) continue;
      TF_ASSIGN_OR_RETURN(part.parameter,
                          function->graph.AddParameter(part.type.dtype, part.shape));
      function->graph.SetList(part.parameter, part.list);
    }
  }
  return Filled(parameters());
}

std::vector<TensorValue> CarriedValues::parameters() const {
  std::vector<TensorValue> parameters;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      if (part.type.is_tensor) parameters.push_back(part.parameter);
    }
  }
  return parameters;
}

absl::StatusOr<bool> CarriedValues::Widen(int index, const Value& next, InnerFunction* function) {
  if (!SameStructure(starts_[index], next)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Describe(starts_[index]), " before a loop that a tensor decides and ",
                     Describe(next),
                     " after a trip: it must stay a list of one length; collect tensors with "
                     "tf.concat, or in a tensor made before the loop"));
  }
  Value::List parts;
  AppendParts(next, &parts);
  bool wider = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    TF_ASSIGN_OR_RETURN(bool one, WidenPart(parts[i], function, &parts_[index][i]));
    wider |= one;
  }
  return wider;
}

absl::StatusOr<bool> CarriedValues::WidenPart(const Value& next, InnerFunction* function,
                                              Part* part) {
  const PartType before = part->type;
  if (!before.is_tensor) {
    if (Same(part->start, next)) return false;
    TF_ASSIGN_OR_RETURN(part->type, Meet(part->start, next));
    part->settled = true;
  } else if (!part->settled && next.as_tensor() != nullptr &&
             next.as_tensor()->node == part->parameter.node) {
    part->type = {};
    return true;
  } else {
    TF_ASSIGN_OR_RETURN(part->type, Meet(FromPart(part->parameter, before), next));
    if (!part->type.is_tensor) part->type = before;  // handed on as it is
  }
  const PartialTensorShape given = ShapeOf(next, &function->graph);
  const PartialTensorShape shape = part->has_shape ? Common(part->shape, given) : given;
  ListShape list = Common(part->list, ListOf(next, function->graph));
  const bool wider = !(part->type == before) || !part->has_shape ||
                     !shape.IsIdenticalTo(part->shape) || !(list == part->list);
  part->list = std::move(list);
  part->has_shape = true;
  part->shape = shape;
  return wider;
}

absl::StatusOr<std::vector<TensorValue>> CarriedValues::Given(absl::Span<const Value> next,
                                                              InnerFunction* function) const {
  std::vector<TensorValue> given;
  for (size_t i = 0; i < parts_.size(); ++i) {
    Value::List parts;
    AppendParts(next[i], &parts);
    for (size_t j = 0; j < parts.size(); ++j) {
      if (!parts_[i][j].type.is_tensor) continue;
      TF_ASSIGN_OR_RETURN(TensorValue tensor,
                          ToPart(parts[j], parts_[i][j].type, &function->emitter));
      given.push_back(std::move(tensor));
    }
  }
  return given;
}

absl::StatusOr<std::vector<TensorValue>> CarriedValues::Started(Emitter* outer) const {
  std::vector<TensorValue> started;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      if (!part.type.is_tensor) continue;
      TF_ASSIGN_OR_RETURN(TensorValue tensor, ToPart(part.start, part.type, outer, part.shape));
      started.push_back(std::move(tensor));
    }
  }
  return started;
}

std::vector<Value> CarriedValues::Filled(absl::Span<const TensorValue> variables) const {
  std::vector<Value> filled;
  const TensorValue* variable = variables.data();
  for (size_t i = 0; i < parts_.size(); ++i) {
    Value::List parts;
    for (const Part& part : parts_[i]) {
      parts.push_back(part.type.is_tensor ? FromPart(*variable++, part.type) : part.start);
    }
    const Value* next = parts.data();
    filled.push_back(WithParts(starts_[i], &next));
  }
  return filled;
}

std::vector<PartialTensorShape> CarriedValues::shapes() const {
  std::vector<PartialTensorShape> shapes;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      if (part.type.is_tensor) shapes.push_back(part.shape);
    }
  }
  return shapes;
}

std::vector<ListShape> CarriedValues::lists() const {
  std::vector<ListShape> lists;
  for (const auto& parts : parts_) {
    for (const Part& part : parts) {
      if (part.type.is_tensor) lists.push_back(part.list);
    }
  }
  return lists;
}

size_t CarriedValues::parts() const {
  size_t count = 0;
  for (const auto& parts : parts_) count += parts.size();
  return count;
}

}  // namespace composite
