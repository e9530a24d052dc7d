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

bool IsParameter(const Value& value, const TensorValue& parameter) {
  return value.as_tensor() != nullptr && value.as_tensor()->node == parameter.node;
}

}  // namespace

CarriedValues::CarriedValues(std::vector<Value> starts, Emitter* outer)
    : starts_(std::move(starts)) {
  for (const Value& start : starts_) {
    first_part_.push_back(parts_.size());
    Value::List parts;
    AppendParts(start, &parts);
    for (Value& part : parts) {
      Part& added = parts_.emplace_back();
      added.type = TypeOf(part);
      added.has_shape = !part.is_undefined();
      if (added.has_shape) added.shape = ShapeOf(part, &outer->graph());
      added.list = ListOf(part, outer->graph());
      added.start = std::move(part);
    }
  }
}

template <typename T>
std::vector<T> CarriedValues::OfVariables(T Part::* field) const {
  std::vector<T> fields;
  for (const Part& part : parts_) {
    if (part.type.is_tensor) fields.push_back(part.*field);
  }
  return fields;
}

absl::StatusOr<std::vector<Value>> CarriedValues::Enter(InnerFunction* function) {
  for (Part& part : parts_) {
    if (!part.type.is_tensor) continue;
    TF_ASSIGN_OR_RETURN(part.parameter, function->graph.AddParameter(part.type.dtype, part.shape));
    function->graph.SetList(part.parameter, part.list);
  }
  return Filled(parameters());
}

std::vector<TensorValue> CarriedValues::parameters() const { return OfVariables(&Part::parameter); }

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
  Part* own = &parts_[first_part_[index]];
  bool wider = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    TF_ASSIGN_OR_RETURN(bool one, WidenPart(parts[i], function, &own[i]));
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
  } else if (!part->settled && (IsParameter(next, part->parameter) || Same(part->start, next))) {
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
  Value::List parts;
  for (const Value& value : next) AppendParts(value, &parts);
  std::vector<TensorValue> given;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].type.is_tensor) continue;
    TF_ASSIGN_OR_RETURN(TensorValue tensor, ToPart(parts[i], parts_[i].type, &function->emitter));
    given.push_back(std::move(tensor));
  }
  return given;
}

absl::StatusOr<std::vector<TensorValue>> CarriedValues::Started(Emitter* outer) const {
  std::vector<TensorValue> started;
  for (const Part& part : parts_) {
    if (!part.type.is_tensor) continue;
    TF_ASSIGN_OR_RETURN(TensorValue tensor, ToPart(part.start, part.type, outer, part.shape));
    started.push_back(std::move(tensor));
  }
  return started;
}

std::vector<Value> CarriedValues::Filled(absl::Span<const TensorValue> variables) const {
  const TensorValue* variable = variables.data();
  Value::List parts;
  for (const Part& part : parts_) {
    parts.push_back(part.type.is_tensor ? FromPart(*variable++, part.type) : part.start);
  }
  std::vector<Value> filled;
  const Value* next = parts.data();
  for (const Value& start : starts_) filled.push_back(WithParts(start, &next));
  return filled;
}

std::vector<PartialTensorShape> CarriedValues::shapes() const { return OfVariables(&Part::shape); }

std::vector<ListShape> CarriedValues::lists() const { return OfVariables(&Part::list); }

}  // namespace composite
