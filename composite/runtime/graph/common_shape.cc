#include "composite/runtime/graph/common_shape.h"

#include <cstdint>
#include <vector>

#include "composite/runtime/graph/known_shape.h"

namespace composite {

using tensorflow::PartialTensorShape;

PartialTensorShape Common(const PartialTensorShape& a, const PartialTensorShape& b) {
  if (a.unknown_rank() || b.unknown_rank() || a.dims() != b.dims()) return PartialTensorShape();
  std::vector<int64_t> sizes(a.dims());
  for (int i = 0; i < a.dims(); ++i) {
    sizes[i] = a.dim_size(i) == b.dim_size(i) ? a.dim_size(i) : -1;
  }
  return KnownShape(sizes);
}

}  // namespace composite
