#include "composite/runtime/emit/subscript.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/emit/item.h"
#include "composite/runtime/value/constant.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;

// The operands of a StridedSlice while they are put together, an element for each part.
struct Strides {
  Value::List begin, end, step;
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_mask = 0;

  int64_t bit() const { return int64_t{1} << begin.size(); }
  void Add(Value first, Value last, Value by) {
    begin.push_back(std::move(first));
    end.push_back(std::move(last));
    step.push_back(std::move(by));
  }
};

// A bool is no index: True beside a tensor would be a mask.
absl::Status CheckIndex(const Value& value) {
  const DataType dtype = value.as_tensor() ? value.as_tensor()->dtype : tensorflow::DT_INVALID;
  if (value.as_int() != nullptr || dtype == tensorflow::DT_INT32 || dtype == tensorflow::DT_INT64) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a tensor is indexed with integers, slices, None and ..., got ", Describe(value)));
}

absl::Status AddIndex(const Value& index, Emitter* emitter, Strides* strides) {
  TF_RETURN_IF_ERROR(CheckIndex(index));
  strides->shrink_mask |= strides->bit();
  // StridedSlice reads nothing of the end of an index.
  strides->Add(index, Value::Int(0), Value::Int(1));
  return absl::OkStatus();
}

absl::Status AddSlice(const Value* bounds, Strides* strides) {
  for (int i = 0; i < 3; ++i) {
    if (!bounds[i].is_none()) TF_RETURN_IF_ERROR(CheckIndex(bounds[i]));
  }
  if (bounds[2].as_int() != nullptr && *bounds[2].as_int() == 0) {
    return absl::InvalidArgumentError("the step of a slice must not be zero");
  }
  if (bounds[0].is_none()) strides->begin_mask |= strides->bit();
  if (bounds[1].is_none()) strides->end_mask |= strides->bit();
  auto or_number = [](const Value& value, int64_t number) {
    return value.is_none() ? Value::Int(number) : value;
  };
  strides->Add(or_number(bounds[0], 0), or_number(bounds[1], 0), or_number(bounds[2], 1));
  return absl::OkStatus();
}

// StridedSlice takes its operands in one dtype: int64 if any needs it.
DataType IndexType(const Strides& strides) {
  for (const Value::List* list : {&strides.begin, &strides.end, &strides.step}) {
    for (const Value& value : *list) {
      const TensorValue* tensor = value.as_tensor();
      if (tensor != nullptr && tensor->dtype == tensorflow::DT_INT64) return tensorflow::DT_INT64;
      const int64_t* number = value.as_int();
      if (number != nullptr && (*number > std::numeric_limits<int32_t>::max() ||
                                *number < std::numeric_limits<int32_t>::min())) {
        return tensorflow::DT_INT64;
      }
    }
  }
  return tensorflow::DT_INT32;
}

absl::StatusOr<Value> AsVector(Value::List list, DataType dtype, Emitter* emitter) {
  for (Value& value : list) {
    if (value.is_strong() && value.as_tensor()->dtype != dtype) {
      TF_ASSIGN_OR_RETURN(
          value, emitter->Call("Cast", {"x", "DstT"}, {std::move(value), Value::Type(dtype)}));
    }
  }
  TF_ASSIGN_OR_RETURN(TensorValue vector,
                      emitter->ToTensor(Value::MakeList(std::move(list)), dtype));
  return Value::Tensor(std::move(vector));
}

absl::StatusOr<Value> SliceTensor(absl::string_view spec, const std::vector<Value>& inputs,
                                  Emitter* emitter) {
  Strides strides;
  const Value* next = inputs.data() + 1;
  for (char part : spec) {
    if (part == 'i') {
      TF_RETURN_IF_ERROR(AddIndex(*next++, emitter, &strides));
    } else if (part == 's') {
      TF_RETURN_IF_ERROR(AddSlice(next, &strides));
      next += 3;
    } else {
      (part == 'e' ? strides.ellipsis_mask : strides.new_axis_mask) |= strides.bit();
      strides.Add(Value::Int(0), Value::Int(0), Value::Int(1));
    }
  }
  const DataType dtype = IndexType(strides);
  TF_ASSIGN_OR_RETURN(Value begin, AsVector(std::move(strides.begin), dtype, emitter));
  TF_ASSIGN_OR_RETURN(Value end, AsVector(std::move(strides.end), dtype, emitter));
  TF_ASSIGN_OR_RETURN(Value step, AsVector(std::move(strides.step), dtype, emitter));
  return emitter->Call("StridedSlice",
                       {"input", "begin", "end", "strides", "begin_mask", "end_mask",
                        "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"},
                       {inputs[0], begin, end, step, Value::Int(strides.begin_mask),
                        Value::Int(strides.end_mask), Value::Int(strides.ellipsis_mask),
                        Value::Int(strides.new_axis_mask), Value::Int(strides.shrink_mask)});
}

// Python's slice.indices: a bound counted from the end if negative, and kept inside.
int64_t Bound(int64_t bound, int64_t size, int64_t low, int64_t high) {
  return std::clamp(bound < 0 ? bound + size : bound, low, high);
}

absl::StatusOr<Value> SliceList(const Value::List& list, SequenceKind kind, const Value* bounds,
                                Emitter* emitter) {
  int64_t numbers[3] = {0, 0, 1};
  bool given[3];
  for (int i = 0; i < 3; ++i) {
    TF_ASSIGN_OR_RETURN(Value known, emitter->Known(bounds[i]));
    given[i] = !known.is_none();
    if (given[i] && !GetInt(known, &numbers[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("a slice has integers for bounds, got ", Describe(known)));
    }
  }
  if (numbers[2] == 0) return absl::InvalidArgumentError("the step of a slice must not be zero");
  const int64_t size = static_cast<int64_t>(list.size());
  const bool forward = numbers[2] > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const int64_t start = given[0] ? Bound(numbers[0], size, low, high) : (forward ? low : high);
  const int64_t stop = given[1] ? Bound(numbers[1], size, low, high) : (forward ? high : low);
  // A step beyond the list takes one element, and must not overflow.
  const int64_t step = std::clamp(numbers[2], -size - 1, size + 1);
  Value::List taken;
  for (int64_t i = start; forward ? i < stop : i > stop; i += step) taken.push_back(list[i]);
  return Value::MakeList(std::move(taken), kind);
}

absl::StatusOr<Value> SliceString(const std::string& text, const Value* bounds, Emitter* emitter) {
  Value::List characters;
  for (std::string& c : Characters(text)) characters.push_back(Value::String(std::move(c)));
  TF_ASSIGN_OR_RETURN(Value taken, SliceList(characters, SequenceKind::kList, bounds, emitter));
  std::string result;
  for (const Value& character : *taken.as_list()) result += *character.as_string();
  return Value::String(std::move(result));
}

// How many values the parts take; -1 for a letter that is none of them.
int64_t Operands(absl::string_view spec) {
  int64_t count = 0;
  for (char part : spec) {
    if (part != 'i' && part != 's' && part != 'e' && part != 'n') return -1;
    count += part == 'i' ? 1 : part == 's' ? 3 : 0;
  }
  return count;
}

}  // namespace

absl::StatusOr<Value> Subscript(absl::string_view spec, const std::vector<Value>& inputs,
                                Emitter* emitter) {
  // TensorFlow's masks are 32 bits wide.
  if (spec.size() > 31 || static_cast<int64_t>(inputs.size()) != Operands(spec) + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a subscript '", spec, "' with ", inputs.size(), " values is malformed"));
  }
  const Value& value = inputs[0];
  if (value.is_strong()) return SliceTensor(spec, inputs, emitter);
  if (spec == "i") return Item(value, inputs[1], emitter);
  if (spec == "s" && value.as_list() != nullptr) {
    return SliceList(*value.as_list(), value.kind(), &inputs[1], emitter);
  }
  if (spec == "s" && value.as_shape() != nullptr) {
    TF_ASSIGN_OR_RETURN(Value::List dims, emitter->Dims(*value.as_shape()));
    return SliceList(dims, SequenceKind::kShape, &inputs[1], emitter);
  }
  if (spec == "s" && value.as_string() != nullptr) {
    return SliceString(*value.as_string(), &inputs[1], emitter);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(value), " is indexed with one integer or one slice"));
}

}  // namespace composite
