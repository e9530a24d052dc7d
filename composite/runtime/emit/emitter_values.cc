// The parts of Emitter that look into values (lengths, items) and make outputs of them.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/text.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/constant.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using tensorflow::DataType;

absl::StatusOr<TensorValue> Emitter::AsTensor(const Value& value) {
  if (value.as_tensor() != nullptr) return *value.as_tensor();
  const DataType strong = StrongType(value);
  const DataType dtype = strong != tensorflow::DT_INVALID ? strong : NaturalType(value);
  if (dtype == tensorflow::DT_INVALID) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(value), " is no tensor"));
  }
  return ToTensor(value, dtype);
}

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

absl::StatusOr<std::vector<TensorValue>> Emitter::ToTensors(const Value& value,
                                                            absl::Span<const DataType> types,
                                                            bool is_list) {
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
