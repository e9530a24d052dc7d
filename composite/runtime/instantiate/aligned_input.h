// Inputs as TensorFlow's kernels can read them.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_ALIGNED_INPUT_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_ALIGNED_INPUT_H_

#include <memory>
#include <vector>

#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Most kernels of TensorFlow abort the process where a tensor is not aligned as Eigen has it: a
// view made by DLPack, or by a custom op. Such an input is copied where an expansion is entered.
class AlignedInputs {
 public:
  // Of tensors in the host's memory, any number of which are taken, each once. Without copies this
  // costs no memory.
  const tensorflow::Tensor* Of(const tensorflow::Tensor& tensor) {
    return tensor.IsAligned() ? &tensor : CopyOf(tensor);
  }

 private:
  const tensorflow::Tensor* CopyOf(const tensorflow::Tensor& tensor);

  // Of one tensor each: their addresses stay.
  std::vector<std::unique_ptr<const tensorflow::Tensor>> copies_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_ALIGNED_INPUT_H_
