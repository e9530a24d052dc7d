// Tensors between TVM and TensorFlow, which share memory where they can, as in
// composite/hybrid/transfer.py.
#ifndef COMPOSITE_RUNTIME_HYBRID_TRANSFER_H_
#define COMPOSITE_RUNTIME_HYBRID_TRANSFER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Tensors as TVM's functions take and return them.
struct TvmValues {
  std::vector<tvm_ffi::Value> owned;
  std::vector<tvm_abi::Any> all;
};

// Each is a tensor of TVM on the same memory, or on a copy's where that is not aligned; or an
// object that TVM passes on as it is, where it has no such dtype.
absl::StatusOr<TvmValues> ToTvm(absl::Span<const tensorflow::Tensor> tensors);

// The same the other way. Nothing is written into the memory of TVM's tensors, which are kept.
absl::StatusOr<std::vector<tensorflow::Tensor>> ToTensorFlow(absl::Span<const tvm_abi::Any> values);
absl::StatusOr<tensorflow::Tensor> ToTensorFlow(const tvm_abi::Any& value);

// A tensor of TVM in memory of the C++ heap, which no other thread has to wait for, as it has to
// for TensorFlow's allocator. ResourceExhausted where there is none.
absl::StatusOr<tvm_ffi::Value> NewTensor(absl::Span<const int64_t> dims, tvm_abi::DataType dtype);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_TRANSFER_H_
