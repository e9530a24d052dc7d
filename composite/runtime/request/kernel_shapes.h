// The shapes of one call, or of one class of calls, laid out flat: what kernels are found by.
#ifndef COMPOSITE_RUNTIME_REQUEST_KERNEL_SHAPES_H_
#define COMPOSITE_RUNTIME_REQUEST_KERNEL_SHAPES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace composite {

// The dims of all flattened inputs, one after the other. In a class a negative dim is the symbol
// -(dim + 1): equal symbols are equal dims.
struct Signature {
  absl::InlinedVector<int, 8> ranks;
  absl::InlinedVector<int64_t, 16> dims;

  bool operator==(const Signature& other) const {
    return ranks == other.ranks && dims == other.dims;
  }
  template <typename H>
  friend H AbslHashValue(H state, const Signature& signature) {
    return H::combine(std::move(state), signature.ranks, signature.dims);
  }
  bool has_empty_input() const { return std::find(dims.begin(), dims.end(), 0) != dims.end(); }
};

using SymbolValues = absl::InlinedVector<int64_t, 4>;

// Whether `call` belongs to the class `shapes`, and then the values of its symbols. A hot path.
bool Match(const Signature& shapes, const Signature& call, SymbolValues* values);

// The number of symbols, one more than the highest.
inline int SymbolCount(const Signature& signature) {
  int64_t count = 0;
  for (int64_t dim : signature.dims) count = std::max(count, -dim);
  return static_cast<int>(count);
}

// From and to the list(shape) of a record. InvalidArgument for an unknown rank.
absl::StatusOr<Signature> ParseSignature(const tensorflow::AttrValue& shapes);
tensorflow::AttrValue ToAttrValue(const Signature& signature);

// "[32,1024], [s0,10]"
std::string ToString(const Signature& signature);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REQUEST_KERNEL_SHAPES_H_
