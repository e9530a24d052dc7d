// TensorFlow's tensors in the words of DLPack, for every dtype that both have.
#ifndef COMPOSITE_RUNTIME_FOREIGN_DLPACK_H_
#define COMPOSITE_RUNTIME_FOREIGN_DLPACK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// Code kNoAbiCode (dtypes.h) for a dtype that DLPack has no word for, or that TensorFlow stores in
// another way: strings, resources, variants, quantized numbers, integers of less than a byte.
tvm_abi::DataType ToDlpack(tensorflow::DataType dtype);

// Of a tensor in the CPU's memory that has no gaps. InvalidArgument for any other, and for a dtype
// that TensorFlow has not.
absl::StatusOr<tensorflow::DataType> DtypeOfHostTensor(const tvm_abi::Tensor& tensor);

// `dims` are the tensor's, and live as long as the description. Its address is never null and is
// that of the tensor, so that what is written there is what TensorFlow sees. `device`: where the
// tensor lies.
tvm_abi::Tensor DescribeTensor(const tensorflow::Tensor& tensor, int64_t* dims,
                               tvm_abi::Device device = {tvm_abi::kCpu, 0});

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_DLPACK_H_
