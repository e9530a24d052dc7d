// Of which inputs that never change kernels may have a packed form: factors of products, filters.
#ifndef COMPOSITE_RUNTIME_KERNELS_PACKING_H_
#define COMPOSITE_RUNTIME_KERNELS_PACKING_H_

#include <cstdint>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// Floats, and integers that stand for them.
inline bool MayBePacked(tensorflow::DataType dtype) {
  return tensorflow::DataTypeIsFloating(dtype) || dtype == tensorflow::DT_INT8 ||
         dtype == tensorflow::DT_UINT8 || dtype == tensorflow::DT_INT16;
}

// Whether it may be, and is large enough for that to matter.
inline bool IsWorthPacking(const tensorflow::Tensor& tensor) {
  constexpr int64_t kFewestElements = 256;
  return MayBePacked(tensor.dtype()) && tensor.dims() >= 2 &&
         tensor.NumElements() >= kFewestElements;
}

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_PACKING_H_
