#include "composite/runtime/emit/join.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/casts.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/value/constant.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::PartialTensorShape;

bool SameTensor(const TensorValue& a, const TensorValue& b) {
  return a.node == b.node && a.index == b.index && a.weak == b.weak;
}

bool SameShape(const ShapeValue& a, const ShapeValue& b) {
  if (a.source.node != nullptr || b.source.node != nullptr) return SameTensor(a.source, b.source);
  return a.known.IsIdenticalTo(b.known);
}

PartType WeakMeet(const PartType& a, const PartType& b) {
  if (a.dtype == b.dtype) return a;
  const bool floating = a.dtype == tensorflow::DT_DOUBLE || b.dtype == tensorflow::DT_DOUBLE;
  return {true, floating ? tensorflow::DT_DOUBLE : tensorflow::DT_INT64, true};
}

absl::Status Different(const Value& a, const Value& b) {
  return absl::InvalidArgumentError(
      absl::StrCat("is ", Describe(a), " on one path and ", Describe(b),
                   " on another, and a tensor decides which; a tensor can choose between numbers "
                   "and tensors of one dtype"));
}

absl::StatusOr<TensorValue> Nothing(DataType dtype, const PartialTensorShape& shape,
                                    Emitter* emitter) {
  const Value zero = dtype == tensorflow::DT_BOOL     ? Value::Bool(false)
                     : dtype == tensorflow::DT_STRING ? Value::String("")
                                                      : Value::Int(0);
  TF_ASSIGN_OR_RETURN(TensorValue scalar, emitter->ToTensor(zero, dtype));
  if (!shape.IsFullyDefined() || shape.dims() == 0) return scalar;
  Value::List dims;
  for (int64_t size : shape.dim_sizes()) dims.push_back(Value::Int(size));
  TF_ASSIGN_OR_RETURN(Value filled, emitter->Call("Fill", {"dims", "value"},
                                                  {Value::MakeList(std::move(dims)),
                                                   Value::Tensor(std::move(scalar))}));
  return *filled.as_tensor();
}

}  // namespace

bool Same(const Value& a, const Value& b) {
  if (a.as_tensor() && b.as_tensor()) return SameTensor(*a.as_tensor(), *b.as_tensor());
  if (a.as_shape() && b.as_shape()) return SameShape(*a.as_shape(), *b.as_shape());
  if (a.as_bool() && b.as_bool()) return *a.as_bool() == *b.as_bool();
  if (a.as_int() && b.as_int()) return *a.as_int() == *b.as_int();
  if (a.as_float() && b.as_float()) {  // by its bits: 0.0 is not -0.0, and NaN is itself
    return absl::bit_cast<uint64_t>(*a.as_float()) == absl::bit_cast<uint64_t>(*b.as_float());
  }
  if (a.as_string() && b.as_string()) return *a.as_string() == *b.as_string();
  if (a.as_type() && b.as_type()) return *a.as_type() == *b.as_type();
  if (a.as_constant() && b.as_constant()) return a.as_constant() == b.as_constant();
  if (a.as_func() && b.as_func()) return a.as_func() == b.as_func();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

void AppendParts(const Value& value, Value::List* parts) {
  if (value.as_list() == nullptr) {
    parts->push_back(value);
    return;
  }
  for (const Value& item : *value.as_list()) AppendParts(item, parts);
}

Value WithParts(const Value& like, const Value** next) {
  if (like.as_list() == nullptr) return *(*next)++;
  Value::List items;
  for (const Value& item : *like.as_list()) items.push_back(WithParts(item, next));
  return Value::MakeList(std::move(items), like.kind());
}

bool SameStructure(const Value& a, const Value& b) {
  if (a.as_list() == nullptr || b.as_list() == nullptr) {
    return a.as_list() == nullptr && b.as_list() == nullptr;
  }
  if (a.kind() != b.kind() || a.as_list()->size() != b.as_list()->size()) return false;
  for (size_t i = 0; i < a.as_list()->size(); ++i) {
    if (!SameStructure((*a.as_list())[i], (*b.as_list())[i])) return false;
  }
  return true;
}

PartType TypeOf(const Value& part) {
  if (part.is_weak() || part.is_number()) return {true, WeakType(part), true};
  if (part.is_strong()) return {true, NaturalType(part), false};
  return {};
}

absl::StatusOr<PartType> Meet(const Value& a, const Value& b) {
  if (Same(a, b)) return PartType{};
  const PartType x = TypeOf(a), y = TypeOf(b);
  if (a.is_undefined() && y.is_tensor) return y;
  if (b.is_undefined() && x.is_tensor) return x;
  if (!x.is_tensor && !y.is_tensor) return Different(a, b);
  if (x.weak && y.weak) return WeakMeet(x, y);
  const bool first = x.is_tensor && !x.weak;
  const PartType& type = first ? x : y;
  const Value& other = first ? b : a;
  // A string beside a string tensor, a number beside one of numbers.
  if (!Adopts(other, type.dtype) || other.as_shape() || other.as_type()) return Different(a, b);
  return type;
}

absl::StatusOr<TensorValue> ToPart(const Value& part, const PartType& type, Emitter* emitter,
                                   const PartialTensorShape& later) {
  if (part.is_undefined()) return Nothing(type.dtype, later, emitter);
  // Numbers meet as Python has it: True is 1, 1 is 1.0.
  const PartType own = TypeOf(part);
  if (own.weak && type.weak && own.dtype != type.dtype && part.as_tensor() != nullptr) {
    TensorValue strong = *part.as_tensor();
    strong.weak = false;
    TF_ASSIGN_OR_RETURN(Value cast,
                        emitter->Call("Cast", {"x", "DstT"},
                                      {Value::Tensor(std::move(strong)), Value::Type(type.dtype)}));
    return *cast.as_tensor();
  }
  int64_t number = 0;
  if (part.as_bool() && type.dtype != tensorflow::DT_BOOL && GetInt(part, &number)) {
    return emitter->ToTensor(Value::Int(number), type.dtype);
  }
  return emitter->ToTensor(part, type.dtype);
}

Value FromPart(TensorValue tensor, const PartType& type) {
  tensor.weak = type.weak;
  tensor.fact = nullptr;
  return Value::Tensor(std::move(tensor));
}

}  // namespace composite
