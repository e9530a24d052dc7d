#include "composite/runtime/foreign/dlpack.h"

#include "composite/runtime/kernels/dtypes.h"

namespace composite {
namespace {

// DLDataTypeCode, beyond tvm_abi's.
enum DlpackCode : uint8_t {
  kComplex = 5,
  kFloat8E4m3b11fnuz = 9,
  kFloat8E4m3fn = 10,
  kFloat8E4m3fnuz = 11,
  kFloat8E5m2 = 12,
  kFloat8E5m2fnuz = 13,
};

// What a tensor without elements points to: kernels check that an address is there and aligned.
alignas(64) char nothing[64];

}  // namespace

tvm_abi::DataType ToDlpack(tensorflow::DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_COMPLEX64:
      return {kComplex, 64, 1};
    case tensorflow::DT_COMPLEX128:
      return {kComplex, 128, 1};
    case tensorflow::DT_FLOAT8_E4M3B11FNUZ:
      return {kFloat8E4m3b11fnuz, 8, 1};
    case tensorflow::DT_FLOAT8_E4M3FN:
      return {kFloat8E4m3fn, 8, 1};
    case tensorflow::DT_FLOAT8_E4M3FNUZ:
      return {kFloat8E4m3fnuz, 8, 1};
    case tensorflow::DT_FLOAT8_E5M2:
      return {kFloat8E5m2, 8, 1};
    case tensorflow::DT_FLOAT8_E5M2FNUZ:
      return {kFloat8E5m2fnuz, 8, 1};
    default:
      return ToAbi(dtype);
  }
}

tvm_abi::Tensor DescribeTensor(const tensorflow::Tensor& tensor, int64_t* dims,
                               tvm_abi::Device device) {
  void* data = tensor.data();
  return {data != nullptr ? data : nothing,
          device,
          tensor.dims(),
          ToDlpack(tensor.dtype()),
          dims,
          nullptr,
          0};
}

}  // namespace composite
