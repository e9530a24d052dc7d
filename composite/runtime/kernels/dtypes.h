// Which dtypes kernels can have: those that the kernels' ABI has words for.
#ifndef COMPOSITE_RUNTIME_KERNELS_DTYPES_H_
#define COMPOSITE_RUNTIME_KERNELS_DTYPES_H_

#include <cstdint>

#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// The ABI's word for a dtype; code kNoAbiCode when it has none.
constexpr uint8_t kNoAbiCode = 255;
tvm_abi::DataType ToAbi(tensorflow::DataType dtype);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_DTYPES_H_
