// Which dtypes kernels can have: those that the kernels' ABI has words for, and of these the ones
// that the compiler of this process computes in.
#ifndef COMPOSITE_RUNTIME_KERNELS_DTYPES_H_
#define COMPOSITE_RUNTIME_KERNELS_DTYPES_H_

#include <cstdint>
#include <string>

#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// A set that costs as much as an integer. Reference dtypes are one and the same.
class DtypeSet {
 public:
  DtypeSet() = default;
  static DtypeSet All() { return DtypeSet(~uint64_t{0}); }
  static DtypeSet Of(tensorflow::DataTypeSlice dtypes);

  void Add(tensorflow::DataType dtype) { bits_ |= Bit(dtype); }
  bool Has(tensorflow::DataType dtype) const { return (bits_ & Bit(dtype)) != 0; }
  bool IsIn(const DtypeSet& other) const { return (bits_ & ~other.bits_) == 0; }
  // The names of those that are not in `other`: "uint8, int16".
  std::string Without(const DtypeSet& other) const;

  // For an atomic variable.
  explicit DtypeSet(uint64_t bits) : bits_(bits) {}
  uint64_t bits() const { return bits_; }

 private:
  static constexpr int kOthers = 63;
  static uint64_t Bit(tensorflow::DataType dtype) {
    return uint64_t{1} << (dtype < kOthers ? dtype : kOthers);
  }

  uint64_t bits_ = 0;
};

// The ABI's word for a dtype; code kNoAbiCode when it has none.
constexpr uint8_t kNoAbiCode = 255;
tvm_abi::DataType ToAbi(tensorflow::DataType dtype);

// The dtypes of tensors that can be handed to a kernel.
const DtypeSet& AbiDtypes();

// What the kernel compiler of this process takes; all of them until it was said.
DtypeSet CompiledDtypes();
void SetCompiledDtypes(DtypeSet dtypes);

// Of the inputs and outputs of a node with these attributes. Empty where the attributes do not say,
// which is the node's own kernel to report.
DtypeSet NodeDtypes(const OpVersion& version, tensorflow::AttrSlice attrs);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_DTYPES_H_
