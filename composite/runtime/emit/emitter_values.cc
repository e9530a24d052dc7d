// The parts of Emitter that take values apart (items, lengths) and make them outputs.
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/emit/join.h"
#include "composite/runtime/emit/operators.h"
#include "composite/runtime/value/constant.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using tensorflow::DataType;
using tensorflow::OpDef;

// What has a shape and a dtype: a tensor, or a list that stands for one.
absl::StatusOr<TensorValue> Emitter::AsTensor(const Value& value) {
  if (value.as_tensor() != nullptr) return *value.as_tensor();
  const DataType strong = StrongType(value);
  const DataType dtype = strong != tensorflow::DT_INVALID ? strong : NaturalType(value);
  if (dtype == tensorflow::DT_INVALID) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(value), " is no tensor"));
  }
  return ToTensor(value, dtype);
}

namespace {

// One of the tensors by an index, negative from the end. Gather refuses one that is out of range.
absl::StatusOr<Value> GatherOne(Value::List tensors, const Value& index, Emitter* emitter) {
  const int64_t size = static_cast<int64_t>(tensors.size());
  TF_ASSIGN_OR_RETURN(Value packed,
                      emitter->Call("Pack", {"values"}, {Value::MakeList(std::move(tensors))}));
  TF_ASSIGN_OR_RETURN(TensorValue given, emitter->ToTensor(index, tensorflow::DT_INT64));
  const Value where = Value::Tensor(std::move(given));
  TF_ASSIGN_OR_RETURN(Value negative, emitter->Call("Less", {"x", "y"}, {where, Value::Int(0)}));
  TF_ASSIGN_OR_RETURN(Value wrapped, emitter->Call("AddV2", {"x", "y"}, {where, Value::Int(size)}));
  TF_ASSIGN_OR_RETURN(
      wrapped, emitter->Call("SelectV2", {"condition", "t", "e"}, {negative, wrapped, where}));
  return emitter->Call("GatherV2", {"params", "indices", "axis"}, {packed, wrapped, Value::Int(0)});
}

Value OfType(const PartType& type) {
  TensorValue tensor;
  tensor.dtype = type.dtype;
  return FromPart(std::move(tensor), type);
}

// An item of a list by an index that only the run knows: of numbers or tensors of one shape, or,
// one by one, of lists of those.
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
    return Value::MakeList(std::move(chosen));
  }
  PartType type = TypeOf(list[0]);
  for (const Value& item : list) {
    if (Same(item, list[0])) continue;
    TF_ASSIGN_OR_RETURN(type, Meet(type.is_tensor ? OfType(type) : list[0], item));
  }
  Value::List tensors;
  for (const Value& item : list) {
    if (!type.is_tensor) return list[0];  // the same everywhere
    TF_ASSIGN_OR_RETURN(TensorValue tensor, ToPart(item, type, emitter));
    tensors.push_back(Value::Tensor(std::move(tensor)));
  }
  TF_ASSIGN_OR_RETURN(Value item, GatherOne(std::move(tensors), index, emitter));
  return FromPart(*item.as_tensor(), type);
}

}  // namespace

absl::StatusOr<Value> Emitter::Length(const Value& value) {
  if (value.as_list() != nullptr) return Value::Int(value.as_list()->size());
  if (value.as_range() != nullptr) return value.as_range()->count;
  if (value.as_string() != nullptr) return Value::Int(Characters(*value.as_string()).size());
  if (value.as_shape() != nullptr) {
    TF_ASSIGN_OR_RETURN(int64_t rank, Rank(*value.as_shape()));
    return Value::Int(rank);
  }
  if (value.is_strong()) {
    TF_ASSIGN_OR_RETURN(TensorValue tensor, AsTensor(value));
    const ShapeValue shape{std::move(tensor), {}};
    TF_ASSIGN_OR_RETURN(int64_t rank, Rank(shape));
    if (rank > 0) return Dim(shape, 0);
    return absl::InvalidArgumentError("a scalar tensor has no length");
  }
  return absl::InvalidArgumentError(absl::StrCat(Describe(value), " has no length"));
}

absl::StatusOr<Value> Emitter::Item(const Value& value, const Value& index) {
  if (value.is_strong()) return absl::InvalidArgumentError("a tensor is no list");
  if (const RangeValue* range = value.as_range(); range != nullptr) {
    // Inside of a loop over it, so the index is in range.
    if (Same(range->start, Value::Int(0)) && Same(range->step, Value::Int(1))) return index;
    TF_ASSIGN_OR_RETURN(Value offset, Binary("mul", index, range->step, this));
    return Binary("add", range->start, offset, this);
  }
  const bool at_run_time = index.is_weak() && index.as_tensor()->fact == nullptr;
  if (at_run_time && value.as_list() != nullptr) return RunTimeItem(*value.as_list(), index, this);
  TF_ASSIGN_OR_RETURN(Value known, Known(index));
  int64_t i = 0;
  if (!GetInt(known, &i)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an index must be an int, got ", Describe(known)));
  }
  TF_ASSIGN_OR_RETURN(Value length, Length(value));
  const int64_t size = *length.as_int();
  if (i < -size || i >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ", i, " is out of range for ", size, " items"));
  }
  if (i < 0) i += size;
  if (value.as_list() != nullptr) return (*value.as_list())[i];
  if (value.as_shape() != nullptr) return Dim(*value.as_shape(), static_cast<int>(i));
  return Value::String(Characters(*value.as_string())[i]);
}

absl::StatusOr<std::vector<Value>> Emitter::Unpack(const Value& value, int size) {
  std::vector<Value> items;
  if (const Value::List* list = value.as_list(); list != nullptr) {
    items = *list;
  } else if (value.as_shape() != nullptr) {
    TF_ASSIGN_OR_RETURN(items, Dims(*value.as_shape()));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(value), " cannot be unpacked into ", size, " names"));
  }
  if (static_cast<int>(items.size()) == size) return items;
  return absl::InvalidArgumentError(
      absl::StrCat(items.size(), " values cannot be unpacked into ", size, " names"));
}

absl::StatusOr<std::vector<TensorValue>> Emitter::Output(const OpDef::ArgDef& arg,
                                                         const Value& value,
                                                         tensorflow::AttrSlice attrs) {
  const bool is_list = !arg.number_attr().empty() || !arg.type_list_attr().empty();
  std::vector<DataType> types;
  if (!arg.type_list_attr().empty()) {
    TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(attrs, arg.type_list_attr(), &types));
  } else {
    DataType type = arg.type();
    int64_t count = 1;
    if (!arg.type_attr().empty()) {
      TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(attrs, arg.type_attr(), &type));
    }
    if (!arg.number_attr().empty()) {
      TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(attrs, arg.number_attr(), &count));
    }
    types.assign(count, type);
  }
  Value::List items = {value};
  if (is_list) {
    if (value.as_list() == nullptr || value.as_list()->size() != types.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a list of ", types.size(), " tensors is declared, the body returns ", Describe(value)));
    }
    items = *value.as_list();
  }
  std::vector<TensorValue> tensors;
  for (size_t i = 0; i < items.size(); ++i) {
    const DataType own = StrongType(items[i]);
    if (own != tensorflow::DT_INVALID && own != types[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("declared as ", tensorflow::DataTypeString(types[i]),
                       ", but the body returns ", Describe(items[i])));
    }
    TF_ASSIGN_OR_RETURN(TensorValue tensor, ToTensor(items[i], types[i]));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace composite
