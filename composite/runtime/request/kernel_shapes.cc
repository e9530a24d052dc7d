#include "composite/runtime/request/kernel_shapes.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace composite {

namespace {

constexpr int64_t kMostSymbols = 1024;

}  // namespace

bool Match(const Signature& shapes, const Signature& call, SymbolValues* values) {
  values->clear();
  if (call.ranks != shapes.ranks) return false;
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

absl::StatusOr<Signature> ParseSignature(const tensorflow::AttrValue& shapes) {
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
  return signature;
}

tensorflow::AttrValue ToAttrValue(const Signature& signature) {
  tensorflow::AttrValue value;
  auto* list = value.mutable_list();
  size_t next = 0;
  for (int rank : signature.ranks) {
    tensorflow::TensorShapeProto* shape = list->add_shape();
    for (int i = 0; i < rank; ++i) shape->add_dim()->set_size(signature.dims[next++]);
  }
  return value;
}

std::string ToString(const Signature& signature) {
  std::string text;
  size_t next = 0;
  for (int rank : signature.ranks) {
    absl::StrAppend(&text, text.empty() ? "[" : ", [");
    for (int i = 0; i < rank; ++i) {
      const int64_t dim = signature.dims[next++];
      absl::StrAppend(&text, i == 0 ? "" : ",", dim < 0 ? "s" : "", dim < 0 ? -dim - 1 : dim);
    }
    absl::StrAppend(&text, "]");
  }
  return text;
}

}  // namespace composite
