#include "composite/runtime/foreign/dlpack.h"

#include "absl/strings/str_cat.h"
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

bool IsCompact(const tvm_abi::Tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t stride = 1;
  for (int d = tensor.ndim - 1; d >= 0; stride *= tensor.shape[d--]) {
    if (tensor.shape[d] == 0) return true;
    if (tensor.shape[d] != 1 && tensor.strides[d] != stride) return false;
  }
  return true;
}

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

absl::StatusOr<tensorflow::DataType> DtypeOfHostTensor(const tvm_abi::Tensor& tensor) {
  if (tensor.device.type != tvm_abi::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor on device ", tensor.device.type, ", not on the CPU"));
  }
  if (!IsCompact(tensor)) return absl::InvalidArgumentError("a tensor with gaps: copy it first");
  const tvm_abi::DataType wanted = tensor.dtype;
  for (int i = tensorflow::DataType_MIN + 1; i <= tensorflow::DataType_MAX; ++i) {
    const auto dtype = static_cast<tensorflow::DataType>(i);
    const tvm_abi::DataType word = ToDlpack(dtype);
    if (word.code != kNoAbiCode && word.code == wanted.code && word.bits == wanted.bits &&
        word.lanes == wanted.lanes) {
      return dtype;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("a tensor of DLPack's type (", int{wanted.code},
                                                 ", ", int{wanted.bits}, " bits, ",
                                                 int{wanted.lanes}, " lanes)"));
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
