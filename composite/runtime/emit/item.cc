#include "composite/runtime/emit/item.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/emit/join.h"
#include "composite/runtime/emit/one_of.h"
#include "composite/runtime/emit/operators.h"
#include "composite/runtime/value/constant.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

Value OfType(const PartType& type) {
  TensorValue tensor;
  tensor.dtype = type.dtype;
  return FromPart(std::move(tensor), type);
}

// An item of a list by an index that only the run knows: of numbers or tensors, or, one by
// one, of lists of those.
absl::StatusOr<Value> RunTimeItem(const Value::List& list, const Value& index, Emitter* emitter) {
  auto like_first = [&](const Value& item) { return SameStructure(item, list[0]); };
  if (list.empty() || !absl::c_all_of(list, like_first)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an index that is known when the op runs chooses from items of one kind, not from ",
        Describe(Value::MakeList(list))));
  }
  if (list[0].as_list() != nullptr) {
    Value::List chosen;
    for (size_t i = 0; i < list[0].as_list()->size(); ++i) {
      Value::List column;
      for (const Value& item : list) column.push_back((*item.as_list())[i]);
      TF_ASSIGN_OR_RETURN(Value item, RunTimeItem(column, index, emitter));
      chosen.push_back(std::move(item));
    }
    return Value::MakeList(std::move(chosen), list[0].kind());
  }
  PartType type = TypeOf(list[0]);
  for (const Value& item : list) {
    if (Same(item, list[0])) continue;
    TF_ASSIGN_OR_RETURN(type, Meet(type.is_tensor ? OfType(type) : list[0], item));
  }
  std::vector<TensorValue> tensors;
  for (const Value& item : list) {
    if (!type.is_tensor) return list[0];  // the same everywhere
    TF_ASSIGN_OR_RETURN(TensorValue tensor, ToPart(item, type, emitter));
    tensors.push_back(std::move(tensor));
  }
  TF_ASSIGN_OR_RETURN(TensorValue item, OneOf(tensors, index, emitter));
  return FromPart(std::move(item), type);
}

}  // namespace

absl::StatusOr<Value> Item(const Value& value, const Value& index, Emitter* emitter) {
  if (value.is_strong()) return absl::InvalidArgumentError("a tensor is no list");
  if (const RangeValue* range = value.as_range(); range != nullptr) {
    // Inside of a loop over it, so the index is in range.
    if (Same(range->start, Value::Int(0)) && Same(range->step, Value::Int(1))) return index;
    TF_ASSIGN_OR_RETURN(Value offset, Binary("mul", index, range->step, emitter));
    return Binary("add", range->start, offset, emitter);
  }
  const bool at_run_time = index.is_weak() && index.as_tensor()->fact == nullptr;
  if (at_run_time && value.as_list() != nullptr)
    return RunTimeItem(*value.as_list(), index, emitter);
  TF_ASSIGN_OR_RETURN(Value known, emitter->Known(index));
  int64_t i = 0;
  if (!GetInt(known, &i)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an index must be an int, got ", Describe(known)));
  }
  TF_ASSIGN_OR_RETURN(Value length, emitter->Length(value));
  const int64_t size = *length.as_int();
  if (i < -size || i >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ", i, " is out of range for ", size, " items"));
  }
  if (i < 0) i += size;
  if (value.as_list() != nullptr) return (*value.as_list())[i];
  if (value.as_shape() != nullptr) return emitter->Dim(*value.as_shape(), static_cast<int>(i));
  return Value::String(Characters(*value.as_string())[i]);
}

}  // namespace composite
