#include "composite/runtime/kernels/dtypes.h"

#include <atomic>

#include "absl/strings/str_cat.h"

namespace composite {
namespace {

using tensorflow::DataType;

std::atomic<uint64_t> compiled_dtypes{DtypeSet::All().bits()};

}  // namespace

DtypeSet DtypeSet::Of(tensorflow::DataTypeSlice dtypes) {
  DtypeSet set;
  for (DataType dtype : dtypes) set.Add(dtype);
  return set;
}

std::string DtypeSet::Without(const DtypeSet& other) const {
  std::string names;
  for (int i = 0; i < kOthers; ++i) {
    if ((bits_ & ~other.bits_) >> i & 1) {
      absl::StrAppend(&names, names.empty() ? "" : ", ",
                      tensorflow::DataTypeString(static_cast<DataType>(i)));
    }
  }
  return names;
}

tvm_abi::DataType ToAbi(DataType dtype) {
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

const DtypeSet& AbiDtypes() {
  static const DtypeSet* const dtypes = [] {
    auto* set = new DtypeSet;
    for (int value = tensorflow::DT_FLOAT; tensorflow::DataType_IsValid(value); ++value) {
      const DataType dtype = static_cast<DataType>(value);
      if (ToAbi(dtype).code != kNoAbiCode) set->Add(dtype);
    }
    return set;
  }();
  return *dtypes;
}

DtypeSet CompiledDtypes() { return DtypeSet(compiled_dtypes.load(std::memory_order_relaxed)); }

void SetCompiledDtypes(DtypeSet dtypes) {
  compiled_dtypes.store(dtypes.bits(), std::memory_order_relaxed);
}

DtypeSet NodeDtypes(const OpVersion& version, tensorflow::AttrSlice attrs) {
  tensorflow::NodeDef node;
  node.set_op(version.op_name);
  for (const auto& [name, value] : attrs) (*node.mutable_attr())[name] = value;
  tensorflow::DataTypeVector inputs, outputs;
  if (!tensorflow::InOutTypesForNode(node, version.op_def, &inputs, &outputs).ok()) return {};
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  return DtypeSet::Of(inputs);
}

}  // namespace composite
