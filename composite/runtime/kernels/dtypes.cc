#include "composite/runtime/kernels/dtypes.h"

namespace composite {

tvm_abi::DataType ToAbi(tensorflow::DataType dtype) {
  const auto type = [dtype](tvm_abi::DataTypeCode code) {
    return tvm_abi::DataType{static_cast<uint8_t>(code),
                             static_cast<uint8_t>(8 * tensorflow::DataTypeSize(dtype)), 1};
  };
  switch (dtype) {
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_HALF:
      return type(tvm_abi::kFloat);
    case tensorflow::DT_BFLOAT16:
      return type(tvm_abi::kBfloat);
    case tensorflow::DT_INT8:
    case tensorflow::DT_INT16:
    case tensorflow::DT_INT32:
    case tensorflow::DT_INT64:
      return type(tvm_abi::kInt);
    case tensorflow::DT_UINT8:
    case tensorflow::DT_UINT16:
    case tensorflow::DT_UINT32:
    case tensorflow::DT_UINT64:
      return type(tvm_abi::kUInt);
    case tensorflow::DT_BOOL:
      return type(tvm_abi::kBool);
    default:
      return {kNoAbiCode, 0, 0};
  }
}

}  // namespace composite
