#include "composite/runtime/run/kernel_outputs.h"

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace composite {

using tensorflow::OpKernelContext;

absl::Status AllocateOutputs(OpKernelContext* context, const KernelRecord& record,
                             const SymbolValues& values, DimsOfOutputs* dims, bool* all_empty) {
  *all_empty = context->num_outputs() > 0;
  dims->resize(context->num_outputs());
  for (int i = 0; i < context->num_outputs(); ++i) {
    absl::Status status = record.OutputDims(i, values, &(*dims)[i]);
    if (!status.ok()) return status;
    tensorflow::TensorShape shape;
    status = tensorflow::TensorShape::BuildTensorShape((*dims)[i], &shape);
    if (!status.ok()) return status;
    absl::InlinedVector<int, 4> takes_over;
    for (const Forward& forward : record.forwards) {
      if (forward.output == i) takes_over.push_back(forward.input);
    }
    tensorflow::Tensor* output = nullptr;
    status = context->forward_input_or_allocate_output(takes_over, i, shape, &output);
    if (!status.ok()) return status;
    *all_empty = *all_empty && output->NumElements() == 0;
  }
  return absl::OkStatus();
}

void ReleaseOutputs(OpKernelContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) delete context->release_output(i).tensor;
}

}  // namespace composite
