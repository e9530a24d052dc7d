// The shapes of one call, or of one class of calls, laid out flat: what kernels are found by.
#ifndef COMPOSITE_RUNTIME_REQUEST_KERNEL_SHAPES_H_
#define COMPOSITE_RUNTIME_REQUEST_KERNEL_SHAPES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// The dims of all flattened inputs, one after the other. In a class a negative dim is the symbol
// -(dim + 1): equal symbols are equal dims.
//
// A class may have, in place of the shape of a scalar input, its value: the size that it decides.
// Such an input has the rank kOfValue, and one dim, the value.
struct Signature {
  static constexpr int kOfValue = -1;

  // How many of the dims are an input's.
  static int DimsOf(int rank) { return rank == kOfValue ? 1 : rank; }

  absl::InlinedVector<int, 8> ranks;
  absl::InlinedVector<int64_t, 16> dims;
  // Of a call: the inputs that are scalars and integers, and their values, where those are known
  // and may be sizes. No part of what a signature is compared by.
  absl::InlinedVector<std::pair<int, int64_t>, 2> scalars;

  bool operator==(const Signature& other) const {
    return ranks == other.ranks && dims == other.dims;
  }
  template <typename H>
  friend H AbslHashValue(H state, const Signature& signature) {
    return H::combine(std::move(state), signature.ranks, signature.dims);
  }
  bool has_empty_input() const { return std::find(dims.begin(), dims.end(), 0) != dims.end(); }

  // The value of a scalar input; null if it is not known, or no size.
  const int64_t* Value(int input) const;
  // Notes the value of an input if that may be a size: of a scalar, an integer, above 0.
  void NoteValue(int input, const tensorflow::Tensor& tensor);
};

// Sets the call with the values of these inputs, scalars, in place of their shapes. False where one
// is not known.
bool WithValues(const Signature& call, absl::Span<const int> inputs, Signature* result);

using SymbolValues = absl::InlinedVector<int64_t, 4>;

// Whether `call` belongs to the class `shapes`, and then the values of its symbols. A hot path.
bool Match(const Signature& shapes, const Signature& call, SymbolValues* values);

// The number of symbols, one more than the highest.
inline int SymbolCount(const Signature& signature) {
  int64_t count = 0;
  for (int64_t dim : signature.dims) count = std::max(count, -dim);
  return static_cast<int>(count);
}

// From and to the list(shape) of a record. `of_values`: a list of the inputs whose value takes the
// place of the shape, null for none. InvalidArgument for an unknown rank.
absl::StatusOr<Signature> ParseSignature(const tensorflow::AttrValue& shapes,
                                         const tensorflow::AttrValue* of_values = nullptr);
tensorflow::AttrValue ToAttrValue(const Signature& signature);
// The inputs of rank kOfValue.
std::vector<int> InputsOfValues(const Signature& signature);

// "[32,1024], [s0,10]"; "= s1" for an input by its value.
std::string ToString(const Signature& signature);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REQUEST_KERNEL_SHAPES_H_
