#include "composite/runtime/instantiate/aligned_input.h"

#include "composite/runtime/base/stats.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

const tensorflow::Tensor* AlignedInputs::CopyOf(const tensorflow::Tensor& tensor) {
  if (!tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) return &tensor;
  Count(GlobalStats().copies);
  copies_.push_back(
      std::make_unique<const tensorflow::Tensor>(tensorflow::tensor::DeepCopy(tensor)));
  return copies_.back().get();
}

}  // namespace composite
