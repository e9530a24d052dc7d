// Tensors between TVM and TensorFlow, which share memory where they can, as in
// composite/hybrid/transfer.py.
#ifndef COMPOSITE_RUNTIME_HYBRID_TRANSFER_H_
#define COMPOSITE_RUNTIME_HYBRID_TRANSFER_H_

#include "absl/status/statusor.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// A tensor of TVM on the same memory, or on a copy's where that is not aligned; or an object that
// TVM passes on as it is, where it has no such dtype.
absl::StatusOr<tvm_ffi::Value> ToTvm(const tensorflow::Tensor& tensor);

// The same the other way. Nothing is written into the memory of TVM's tensor, which is kept.
absl::StatusOr<tensorflow::Tensor> ToTensorFlow(const tvm_abi::Any& value);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_TRANSFER_H_
