#include "composite/runtime/request/kernel_shapes.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace composite {

namespace {

constexpr int64_t kMostSymbols = 1024;

}  // namespace

const int64_t* Signature::Value(int input) const {
  for (const auto& [position, value] : scalars) {
    if (position == input) return &value;
  }
  return nullptr;
}

void Signature::NoteValue(int input, const tensorflow::Tensor& tensor) {
  if (tensor.dims() != 0) return;
  int64_t value = 0;
  if (tensor.dtype() == tensorflow::DT_INT32) value = tensor.scalar<int32_t>()();
  if (tensor.dtype() == tensorflow::DT_INT64) value = tensor.scalar<int64_t>()();
  if (value > 0) scalars.emplace_back(input, value);
}

bool WithValues(const Signature& call, absl::Span<const int> inputs, Signature* result) {
  const int64_t* dim = call.dims.data();
  for (size_t i = 0; i < call.ranks.size(); ++i) {
    const int count = Signature::DimsOf(call.ranks[i]);
    const bool by_value = std::find(inputs.begin(), inputs.end(), i) != inputs.end();
    if (by_value && call.ranks[i] == 0) {
      const int64_t* value = call.Value(static_cast<int>(i));
      if (value == nullptr) return false;
      result->ranks.push_back(Signature::kOfValue);
      result->dims.push_back(*value);
    } else {
      result->ranks.push_back(call.ranks[i]);
      result->dims.insert(result->dims.end(), dim, dim + count);
    }
    dim += count;
  }
  return true;
}

bool Match(const Signature& shapes, const Signature& call, SymbolValues* values) {
  values->clear();
  if (call.ranks != shapes.ranks) {
    if (call.scalars.empty() || call.ranks.size() != shapes.ranks.size()) return false;
    Signature by_value;
    return WithValues(call, InputsOfValues(shapes), &by_value) && by_value.ranks == shapes.ranks &&
           Match(shapes, by_value, values);
  }
  for (size_t i = 0; i < call.dims.size(); ++i) {
    const int64_t dim = call.dims[i];
    if (shapes.dims[i] >= 0) {
      if (dim != shapes.dims[i]) return false;
      continue;
    }
    const size_t symbol = -shapes.dims[i] - 1;
    if (values->size() <= symbol) values->resize(symbol + 1, -1);
    if ((*values)[symbol] < 0) (*values)[symbol] = dim;
    if ((*values)[symbol] != dim) return false;
  }
  return true;
}

absl::StatusOr<Signature> ParseSignature(const tensorflow::AttrValue& shapes,
                                         const tensorflow::AttrValue* of_values) {
  Signature signature;
  for (const tensorflow::TensorShapeProto& shape : shapes.list().shape()) {
    if (shape.unknown_rank()) {
      return absl::InvalidArgumentError("_in_shapes: a kernel needs the rank of every input");
    }
    signature.ranks.push_back(shape.dim_size());
    for (const auto& dim : shape.dim()) {
      if (dim.size() < -kMostSymbols) {
        return absl::InvalidArgumentError("_in_shapes: symbols are numbered from 0");
      }
      signature.dims.push_back(dim.size());
    }
  }
  if (of_values == nullptr) return signature;
  for (const int64_t input : of_values->list().i()) {
    if (input < 0 || input >= static_cast<int64_t>(signature.ranks.size()) ||
        signature.ranks[input] != 1) {
      return absl::InvalidArgumentError("_size_inputs: names no input with one dim, its value");
    }
    signature.ranks[input] = Signature::kOfValue;
  }
  return signature;
}

tensorflow::AttrValue ToAttrValue(const Signature& signature) {
  tensorflow::AttrValue value;
  auto* list = value.mutable_list();
  size_t next = 0;
  for (int rank : signature.ranks) {
    tensorflow::TensorShapeProto* shape = list->add_shape();
    for (int i = 0; i < Signature::DimsOf(rank); ++i) {
      shape->add_dim()->set_size(signature.dims[next++]);
    }
  }
  return value;
}

std::vector<int> InputsOfValues(const Signature& signature) {
  std::vector<int> inputs;
  for (size_t i = 0; i < signature.ranks.size(); ++i) {
    if (signature.ranks[i] == Signature::kOfValue) inputs.push_back(static_cast<int>(i));
  }
  return inputs;
}

std::string ToString(const Signature& signature) {
  std::string text;
  size_t next = 0;
  for (int rank : signature.ranks) {
    const bool by_value = rank == Signature::kOfValue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", by_value ? "= " : "[");
    for (int i = 0; i < Signature::DimsOf(rank); ++i) {
      const int64_t dim = signature.dims[next++];
      absl::StrAppend(&text, i == 0 ? "" : ",", dim < 0 ? "s" : "", dim < 0 ? -dim - 1 : dim);
    }
    if (!by_value) absl::StrAppend(&text, "]");
  }
  return text;
}

}  // namespace composite
