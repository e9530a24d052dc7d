#include "composite/runtime/emit/builtins.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/emit/numbers.h"
#include "composite/runtime/emit/operators.h"
#include "composite/runtime/emit/texts.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::PartialTensorShape;

absl::StatusOr<int64_t> KnownInt(const Value& value, absl::string_view function, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value known, emitter->Known(value));
  int64_t number = 0;
  if (GetInt(known, &number)) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(function, " takes integers, got ", Describe(known)));
}

absl::Status CheckCount(uint64_t count) {
  if (count <= static_cast<uint64_t>(kMaxItems)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this has ", count, " items, and a list has at most ", kMaxItems));
}

// A number that only the run knows: one of Python's, whatever its dtype.
absl::StatusOr<Value> RunTimeInt(const Value& value, Emitter* emitter) {
  if (!value.is_strong()) return value;
  TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter->AsTensor(value));
  if (!tensorflow::DataTypeIsInteger(tensor.dtype) || emitter->graph().Rank(tensor) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("range() takes integers, got ", Describe(value)));
  }
  TF_ASSIGN_OR_RETURN(Value number, emitter->Call("Cast", {"x", "DstT"},
                                                  {Value::Tensor(std::move(tensor)),
                                                   Value::Type(tensorflow::DT_INT64)}));
  TensorValue weak = *number.as_tensor();
  weak.weak = true;
  return Value::Tensor(std::move(weak));
}

// The length of range(start, stop, step) is max(0, -((start - stop) // step)).
absl::StatusOr<Value> RunTimeRange(const std::vector<Value>& arguments, Emitter* emitter) {
  std::vector<Value> numbers;
  for (const Value& argument : arguments) {
    TF_ASSIGN_OR_RETURN(Value number, RunTimeInt(argument, emitter));
    numbers.push_back(std::move(number));
  }
  const Value start = numbers.size() == 1 ? Value::Int(0) : numbers[0];
  const Value stop = numbers.size() == 1 ? numbers[0] : numbers[1];
  const Value step = numbers.size() == 3 ? numbers[2] : Value::Int(1);
  Value count = stop;  // of range(stop), what most loops are
  if (numbers.size() > 1) {
    TF_ASSIGN_OR_RETURN(count, Binary("sub", start, stop, emitter));
    TF_ASSIGN_OR_RETURN(count, Binary("floordiv", count, step, emitter));
    TF_ASSIGN_OR_RETURN(count, Unary("neg", count, emitter));
  }
  TF_ASSIGN_OR_RETURN(TensorValue strong, emitter->ToTensor(count, tensorflow::DT_INT64));
  TF_ASSIGN_OR_RETURN(count, emitter->Call("Maximum", {"x", "y"},
                                           {Value::Tensor(std::move(strong)), Value::Int(0)}));
  TensorValue weak = *count.as_tensor();
  weak.weak = true;
  return Value::Range({start, step, Value::Tensor(std::move(weak))});
}

// Whether only the run knows it; a dim that is not known yet may be when the op is expanded again.
bool AtRunTime(const Value& value) {
  const TensorValue* tensor = value.as_tensor();
  return tensor != nullptr && (!tensor->weak || tensor->fact == nullptr);
}

absl::StatusOr<Value> Range(const std::vector<Value>& arguments, Emitter* emitter) {
  if (absl::c_any_of(arguments, AtRunTime)) return RunTimeRange(arguments, emitter);
  std::vector<int64_t> numbers;
  for (const Value& argument : arguments) {
    TF_ASSIGN_OR_RETURN(int64_t number, KnownInt(argument, "range()", emitter));
    numbers.push_back(number);
  }
  const int64_t start = numbers.size() == 1 ? 0 : numbers[0];
  const int64_t stop = numbers.size() == 1 ? numbers[0] : numbers[1];
  const int64_t step = numbers.size() == 3 ? numbers[2] : 1;
  if (step == 0) return absl::InvalidArgumentError("the step of range() must not be zero");
  // Unsigned: the distance of two int64 need not be one.
  const uint64_t size = step > 0 ? step : 0 - static_cast<uint64_t>(step);
  const int64_t low = step > 0 ? start : stop, high = step > 0 ? stop : start;
  const uint64_t distance = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t count = low >= high ? 0 : (distance - 1) / size + 1;
  TF_RETURN_IF_ERROR(CheckCount(count));
  Value::List items;
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back(Value::Int(start + static_cast<int64_t>(i) * step));
  }
  return Value::MakeList(std::move(items), SequenceKind::kRange);
}

absl::StatusOr<Value> Enumerate(const std::vector<Value>& arguments, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value::List items, Items(arguments[0], emitter));
  int64_t number = 0;
  if (arguments.size() == 2) {
    TF_ASSIGN_OR_RETURN(number, KnownInt(arguments[1], "enumerate()", emitter));
  }
  Value::List pairs;
  for (size_t i = 0; i < items.size(); ++i) {
    int64_t count = 0;
    if (__builtin_add_overflow(number, static_cast<int64_t>(i), &count)) {
      return absl::InvalidArgumentError("enumerate() counts beyond 2**63 - 1");
    }
    pairs.push_back(
        Value::MakeList({Value::Int(count), std::move(items[i])}, SequenceKind::kTuple));
  }
  return Value::MakeList(std::move(pairs));
}

absl::StatusOr<Value> Zip(const std::vector<Value>& arguments, Emitter* emitter) {
  std::vector<Value::List> columns;
  size_t rows = arguments.empty() ? 0 : kMaxItems;
  for (const Value& argument : arguments) {
    TF_ASSIGN_OR_RETURN(Value::List items, Items(argument, emitter));
    rows = std::min(rows, items.size());
    columns.push_back(std::move(items));
  }
  Value::List result;
  for (size_t i = 0; i < rows; ++i) {
    Value::List row;
    for (const Value::List& column : columns) row.push_back(column[i]);
    result.push_back(Value::MakeList(std::move(row), SequenceKind::kTuple));
  }
  return Value::MakeList(std::move(result));
}

absl::StatusOr<Value> Reversed(const std::vector<Value>& arguments, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value::List items, Items(arguments[0], emitter));
  std::reverse(items.begin(), items.end());
  return Value::MakeList(std::move(items));
}

absl::StatusOr<Value> List(const std::vector<Value>& arguments, Emitter* emitter) {
  if (arguments.empty()) return Value::MakeList({});
  TF_ASSIGN_OR_RETURN(Value::List items, Items(arguments[0], emitter));
  return Value::MakeList(std::move(items));
}

absl::StatusOr<Value> Tuple(const std::vector<Value>& arguments, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value list, List(arguments, emitter));
  return Value::MakeList(*list.as_list(), SequenceKind::kTuple);
}

// What is known of a shape: one of a tensor, a part of it, or a list of dims.
absl::StatusOr<PartialTensorShape> KnownOf(const Value& value, Emitter* emitter) {
  if (const ShapeValue* shape = value.as_shape(); shape != nullptr) {
    return shape->source.node == nullptr ? shape->known : emitter->graph().Shape(shape->source);
  }
  std::vector<int64_t> dims;
  bool is_shape = value.as_list() != nullptr;
  for (const Value& item : is_shape ? *value.as_list() : Value::List()) {
    int64_t dim = -1;
    is_shape = is_shape && (item.is_none() || item.is_weak() || GetInt(item, &dim));
    dims.push_back(dim);
  }
  PartialTensorShape known;
  if (!is_shape || !PartialTensorShape::MakePartialShape(dims.data(), dims.size(), &known).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is_compatible_with() compares two shapes, not ", Describe(value)));
  }
  return known;
}

// TensorShape.is_compatible_with: whether no dim is known to differ.
absl::StatusOr<Value> IsCompatible(const std::vector<Value>& arguments, Emitter* emitter) {
  if (arguments[0].as_list() != nullptr && arguments[0].kind() != SequenceKind::kShape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is_compatible_with() is a method of shapes, not of ", Describe(arguments[0])));
  }
  TF_ASSIGN_OR_RETURN(PartialTensorShape a, KnownOf(arguments[0], emitter));
  TF_ASSIGN_OR_RETURN(PartialTensorShape b, KnownOf(arguments[1], emitter));
  return Value::Bool(a.IsCompatibleWith(b));
}

const BuiltinRule* Find(absl::string_view name) {
  static const auto* rules = new absl::flat_hash_map<absl::string_view, BuiltinRule>({
      {"range", {&Range, 1, 3}},
      {"enumerate", {&Enumerate, 1, 2}},
      {"zip", {&Zip, 0, 64}},
      {"reversed", {&Reversed, 1, 1}},
      {"list", {&List, 0, 1}},
      {"tuple", {&Tuple, 0, 1}},
      {"is_compatible_with", {&IsCompatible, 2, 2}},
  });
  auto it = rules->find(name);
  if (it != rules->end()) return &it->second;
  const BuiltinRule* of_numbers = FindNumberRule(name);
  return of_numbers != nullptr ? of_numbers : FindTextRule(name);
}

}  // namespace

absl::StatusOr<Value::List> Items(const Value& value, Emitter* emitter) {
  if (value.as_list() != nullptr) return *value.as_list();
  if (value.as_shape() != nullptr) return emitter->Dims(*value.as_shape());
  Value::List items;
  if (value.as_string() != nullptr) {
    for (std::string& c : Characters(*value.as_string())) {
      items.push_back(Value::String(std::move(c)));
    }
    return items;
  }
  if (value.as_range() != nullptr) {
    return absl::InvalidArgumentError(
        "this goes through a range whose length is known only when the op runs; a `for` over the "
        "range itself can");
  }
  if (!value.is_strong()) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(value), " has no items to go through"));
  }
  TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter->AsTensor(value));
  TF_ASSIGN_OR_RETURN(Value length, emitter->Length(value));
  TF_ASSIGN_OR_RETURN(int64_t rows, KnownInt(length, "the number of rows", emitter));
  TF_RETURN_IF_ERROR(CheckCount(rows));
  if (rows == 0) return items;
  TF_ASSIGN_OR_RETURN(Value unpacked, emitter->Call("Unpack", {"value", "num"},
                                                    {Value::Tensor(tensor), Value::Int(rows)}));
  return *unpacked.as_list();
}

absl::StatusOr<Value> Builtin(absl::string_view name, const std::vector<Value>& arguments,
                              Emitter* emitter) {
  const BuiltinRule* rule = Find(name);
  if (rule == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no function '", name, "'"));
  }
  if (arguments.size() < rule->least || arguments.size() > rule->most) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "() does not take ", arguments.size(), " arguments"));
  }
  if (!rule->of_items) return rule->function(arguments, emitter);
  std::vector<Value> given = arguments;
  TF_ASSIGN_OR_RETURN(Value::List items, Items(arguments[0], emitter));
  given[0] = Value::MakeList(std::move(items));
  return rule->function(given, emitter);
}

}  // namespace composite
