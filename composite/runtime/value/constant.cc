#include "composite/runtime/value/constant.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;

absl::Status DoesNotFit(const Value& value, DataType dtype) {
  return absl::InvalidArgumentError(
      absl::StrCat(Describe(value), " cannot become ", WithArticle(dtype), " tensor"));
}

// One number as T. Integers are checked against T's range; a float is rounded as TensorFlow does.
template <typename T>
bool Convert(const Value& value, T* out) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, bool>) {
    if (value.as_bool() == nullptr) return false;
    *out = *value.as_bool();
    return true;
  } else if constexpr (std::is_same_v<T, tensorflow::tstring>) {
    if (value.as_string() == nullptr) return false;
    *out = *value.as_string();
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    if (value.as_int() == nullptr) return false;
    i = *value.as_int();
    if (i < 0 && std::is_unsigned_v<T>) return false;
    if constexpr (sizeof(T) < sizeof(int64_t)) {
      if (i > static_cast<int64_t>(std::numeric_limits<T>::max())) return false;
      if (std::is_signed_v<T> && i < static_cast<int64_t>(std::numeric_limits<T>::min())) {
        return false;
      }
    }
    *out = static_cast<T>(i);
    return true;
  } else {
    double number = 0;
    if (value.as_float() != nullptr) {
      number = *value.as_float();
    } else if (value.as_int() != nullptr) {
      number = static_cast<double>(*value.as_int());
    } else {
      return false;
    }
    if constexpr (std::is_same_v<T, std::complex<double>> || std::is_same_v<T, double>) {
      *out = T(number);
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      *out = T(static_cast<float>(number));
    } else {
      *out = static_cast<T>(static_cast<float>(number));
    }
    return true;
  }
}

// The elements of a nested list in order, and its shape.
struct Flat {
  std::vector<const Value*> elements;
  tensorflow::TensorShape shape;
};

absl::Status Flatten(const Value& value, int depth, Flat* flat, bool first) {
  constexpr int kMaxDepth = 16;
  if (value.as_list() == nullptr) {
    if (depth != flat->shape.dims()) {
      return absl::InvalidArgumentError("lists of unequal lengths cannot become a tensor");
    }
    flat->elements.push_back(&value);
    return absl::OkStatus();
  }
  const Value::List& list = *value.as_list();
  if (depth >= kMaxDepth) return absl::InvalidArgumentError("lists are nested too deeply");
  if (first && depth == flat->shape.dims()) {
    TF_RETURN_IF_ERROR(flat->shape.AddDimWithStatus(list.size()));
  }
  if (depth >= flat->shape.dims() ||
      flat->shape.dim_size(depth) != static_cast<int64_t>(list.size())) {
    return absl::InvalidArgumentError("lists of unequal lengths cannot become a tensor");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    TF_RETURN_IF_ERROR(Flatten(list[i], depth + 1, flat, first && i == 0));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Fill(const Flat& flat, tensorflow::Tensor* tensor) {
  auto out = tensor->flat<T>();
  for (size_t i = 0; i < flat.elements.size(); ++i) {
    if (!Convert<T>(*flat.elements[i], &out(i))) {
      return DoesNotFit(*flat.elements[i], tensor->dtype());
    }
  }
  return absl::OkStatus();
}

absl::Status FillAny(const Flat& flat, tensorflow::Tensor* tensor) {
  switch (tensor->dtype()) {
#define COMPOSITE_CASE(T)                    \
  case tensorflow::DataTypeToEnum<T>::value: \
    return Fill<T>(flat, tensor);
    TF_CALL_NUMBER_TYPES(COMPOSITE_CASE)
    TF_CALL_bool(COMPOSITE_CASE) TF_CALL_tstring(COMPOSITE_CASE)
#undef COMPOSITE_CASE
        default : return absl::InvalidArgumentError(
                      absl::StrCat("a ", tensorflow::DataTypeString(tensor->dtype()),
                                   " tensor cannot be made of Python values; give a tensor"));
  }
}

// Of any dtype, then: Python's [] says none.
bool HasNoElements(const Value& value) {
  const Value::List* list = value.as_list();
  return list != nullptr && std::all_of(list->begin(), list->end(), HasNoElements);
}

}  // namespace

std::vector<Value> ElementsOf(const tensorflow::Tensor& tensor) {
  std::vector<Value> values;
  values.reserve(tensor.NumElements());
  auto add = [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>) {
      values.push_back(Value::Int(static_cast<int64_t>(element)));
    } else {
      values.push_back(Value::Float(static_cast<double>(element)));
    }
  };
  switch (tensor.dtype()) {
#define COMPOSITE_CASE(T)                                                        \
  case tensorflow::DataTypeToEnum<T>::value:                                     \
    for (int64_t i = 0; i < tensor.NumElements(); ++i) add(tensor.flat<T>()(i)); \
    break;
    TF_CALL_REAL_NUMBER_TYPES(COMPOSITE_CASE)
#undef COMPOSITE_CASE
    default:
      break;
  }
  return values;
}

DataType NaturalType(const Value& value) {
  if (value.as_bool()) return tensorflow::DT_BOOL;
  if (value.as_int()) return tensorflow::DT_INT32;
  if (value.as_float()) return tensorflow::DT_FLOAT;
  if (value.as_string()) return tensorflow::DT_STRING;
  if (value.as_shape()) return tensorflow::DT_INT32;
  if (value.as_constant()) return value.as_constant()->dtype();
  if (const TensorValue* tensor = value.as_tensor(); tensor != nullptr) {
    if (!tensor->weak || tensor->dtype == tensorflow::DT_BOOL) return tensor->dtype;
    return tensor->dtype == tensorflow::DT_DOUBLE ? tensorflow::DT_FLOAT : tensorflow::DT_INT32;
  }
  if (value.as_list() == nullptr) return tensorflow::DT_INVALID;
  if (value.as_list()->empty()) return tensorflow::DT_FLOAT;
  DataType type = tensorflow::DT_INVALID;
  for (const Value& item : *value.as_list()) {
    const DataType next = NaturalType(item);
    if (type == tensorflow::DT_INVALID || next == tensorflow::DT_FLOAT) type = next;
  }
  return type;
}

DataType WeakType(const Value& number) {
  if (number.is_weak()) return number.as_tensor()->dtype;
  if (number.as_float() != nullptr) return tensorflow::DT_DOUBLE;
  return number.as_bool() != nullptr ? tensorflow::DT_BOOL : tensorflow::DT_INT64;
}

DataType StrongType(const Value& value) {
  if (value.as_tensor() && !value.is_weak()) return value.as_tensor()->dtype;
  if (value.as_list() == nullptr) return tensorflow::DT_INVALID;
  for (const Value& item : *value.as_list()) {
    const DataType type = StrongType(item);
    if (type != tensorflow::DT_INVALID) return type;
  }
  return tensorflow::DT_INVALID;
}

bool Adopts(const Value& value, DataType dtype) {
  if (HasNoElements(value)) return true;
  const DataType natural = NaturalType(value);
  if (natural == dtype) return true;
  if (StrongType(value) != tensorflow::DT_INVALID) return false;
  const bool floating =
      tensorflow::DataTypeIsFloating(dtype) || tensorflow::DataTypeIsComplex(dtype);
  if (tensorflow::DataTypeIsFloating(natural)) return floating;
  return tensorflow::DataTypeIsInteger(natural) &&
         (floating || tensorflow::DataTypeIsInteger(dtype));
}

absl::StatusOr<tensorflow::Tensor> MakeConstant(const Value& value, DataType dtype) {
  // Tensor's constructor ends the process for a dtype that it cannot allocate.
  if (!tensorflow::DataTypeCanUseMemcpy(dtype) && dtype != tensorflow::DT_STRING) {
    return DoesNotFit(value, dtype);
  }
  Flat flat;
  std::vector<Value> elements;
  if (const tensorflow::Tensor* constant = value.as_constant(); constant != nullptr) {
    if (constant->dtype() == dtype) return *constant;
    if (!Adopts(value, dtype)) return DoesNotFit(value, dtype);
    elements = ElementsOf(*constant);
    for (const Value& element : elements) flat.elements.push_back(&element);
    flat.shape = constant->shape();
  } else {
    TF_RETURN_IF_ERROR(Flatten(value, 0, &flat, true));
  }
  tensorflow::Tensor tensor(dtype, flat.shape);
  TF_RETURN_IF_ERROR(FillAny(flat, &tensor));
  return tensor;
}

}  // namespace composite
