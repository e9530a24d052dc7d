// An op with given attributes, without TensorFlow: which of its kernels covers a call, the shapes
// of its outputs, and the call.
#ifndef COMPOSITE_RUNTIME_STANDALONE_FUNCTION_H_
#define COMPOSITE_RUNTIME_STANDALONE_FUNCTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/standalone/failure.h"
#include "composite/runtime/standalone/table.h"

namespace composite {
namespace standalone {

using tvm_abi::Tensor;

// As tables have it.
inline uint32_t DtypeKey(tvm_abi::DataType dtype) {
  return dtype.lanes == 1 ? dtype.code | uint32_t{dtype.bits} << 8 : ~uint32_t{0};
}

// "float32"
std::string DtypeName(uint32_t key);

// A kernel that covers a call, with the values of its symbols.
struct Choice {
  const Kernel* kernel = nullptr;
  std::array<int64_t, kMostSymbols> values;
};

class Function {
 public:
  // `kernels`: those that this machine can run, the best first; not empty.
  Function(std::string name, std::vector<const Kernel*> kernels)
      : name_(std::move(name)), kernels_(std::move(kernels)) {}

  const std::string& name() const { return name_; }
  int outputs() const { return kernels_.front()->outputs; }

  // Of inputs, dtype, device and dims are read. Fails when no kernel covers the call.
  bool Choose(const Tensor* inputs, int count, Choice* choice, Failure* failure) const;

  // The dims of output i, at most kMostDims of them.
  bool OutputDims(const Choice& choice, int i, int64_t* dims, Failure* failure) const;

  // Tensors that are not compact are refused. What the kernel raises is the failure.
  bool Run(const Choice& choice, const Tensor* inputs, const Tensor* outputs,
           Failure* failure) const;

 private:
  std::string Uncovered(const Tensor* inputs, int count) const;

  const std::string name_;
  const std::vector<const Kernel*> kernels_;
};

// Whether the outputs that a caller brought are those of the call.
bool CheckOutputs(const Function& function, const Choice& choice, const Tensor* outputs, int count,
                  Failure* failure);

}  // namespace standalone
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STANDALONE_FUNCTION_H_
