#include "composite/runtime/run/kernel_outputs.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/memory/tensor_identity.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace composite {

using tensorflow::OpKernelContext;

absl::Status ShapesOfOutputs(const KernelRecord& record, const SymbolValues& values,
                             OutputShapes* outputs) {
  const int count = static_cast<int>(record.out_shapes.size());
  outputs->shapes.resize(count);
  outputs->dims.resize(count);
  outputs->all_empty = count > 0;
  for (int i = 0; i < count; ++i) {
    absl::InlinedVector<int64_t, 8> dims;
    absl::Status status = record.OutputDims(i, values, &dims);
    if (!status.ok()) return status;
    tensorflow::TensorShape& shape = outputs->shapes[i];
    status = tensorflow::TensorShape::BuildTensorShape(dims, &shape);
    if (!status.ok()) return status;
    outputs->dims[i].assign(dims.begin(), dims.end());
    outputs->all_empty = outputs->all_empty && shape.num_elements() == 0;
  }
  return absl::OkStatus();
}

absl::Status AllocateOutputs(OpKernelContext* context, const KernelRecord& record,
                             const OutputShapes& outputs, Updates updates,
                             WrittenVariables* written) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    absl::InlinedVector<int, 4> takes_over;
    absl::optional<tensorflow::Tensor> place;
    for (const Forward& forward : record.forwards) {
      if (forward.output != i) continue;
      const tensorflow::Tensor& input = context->input(forward.input);
      if (MayReuseForResult(input, tvm_abi::kAlignment)) takes_over.push_back(forward.input);
      if (!absl::c_linear_search(updates, forward)) continue;
      place = written->Take(input, outputs.shapes[i], tvm_abi::kAlignment);
    }
    if (place.has_value()) {
      context->set_output(i, *std::move(place));
      continue;
    }
    tensorflow::Tensor* output = nullptr;
    absl::Status status =
        context->forward_input_or_allocate_output(takes_over, i, outputs.shapes[i], &output);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void ReleaseOutputs(OpKernelContext* context) {
  for (int i = 0; i < context->num_outputs(); ++i) delete context->release_output(i).tensor;
}

}  // namespace composite
