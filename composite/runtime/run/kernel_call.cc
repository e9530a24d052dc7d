#include "composite/runtime/run/kernel_call.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/run/kernel_host.h"
#include "composite/runtime/run/kernel_outputs.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

tvm_abi::Tensor Describe(const Tensor& tensor, int64_t* dims) {
  // The memory of inputs is not written: the kernel's signature says which arguments are outputs.
  return {
      tensor.data(), {tvm_abi::kCpu, 0}, tensor.dims(), ToAbi(tensor.dtype()), dims, nullptr, 0};
}

absl::StatusCode CodeOf(const tvm_abi::Error& error) {
  if (error.kind == "IndexError") return absl::StatusCode::kOutOfRange;
  if (error.kind == "MemoryError") return absl::StatusCode::kResourceExhausted;
  const bool caller = error.kind == "TypeError" || error.kind == "ValueError";
  return caller ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal;
}

using Tensors = absl::InlinedVector<tvm_abi::Tensor, 8>;
using Copies = absl::InlinedVector<Tensor, 1>;

absl::Status Run(OpKernelContext* context, const KernelRecord& record, tvm_abi::Function function,
                 Tensors* tensors) {
  KernelHost host(context->device());
  tvm_abi::Error error;
  if (tvm_abi::Call(function, host.host(record.barriers), tensors->data(),
                    static_cast<int>(tensors->size()), &error)) {
    return absl::OkStatus();
  }
  Count(GlobalStats().kernel_errors);
  return KernelError(absl::StrCat(record.name, " of ", record.op), error);
}

// Has a tensor of a call lie where the kernel can read it: in a copy, if it lies elsewhere.
absl::Status Align(OpKernelContext* context, size_t alignment, const Tensor& input,
                   tvm_abi::Tensor* described, Copies* copies) {
  // A power of two: to divide by it would take longer than all else here.
  if ((reinterpret_cast<uintptr_t>(described->data) & (alignment - 1)) == 0) {
    return absl::OkStatus();
  }
  Tensor& copy = copies->emplace_back();
  absl::Status status = context->allocate_temp(input.dtype(), input.shape(), &copy);
  if (!status.ok()) return status;
  std::memcpy(copy.data(), described->data, input.TotalBytes());
  described->data = copy.data();
  Count(GlobalStats().copies);
  return absl::OkStatus();
}

}  // namespace

absl::Status KernelError(absl::string_view kernel, const tvm_abi::Error& error) {
  return absl::Status(CodeOf(error), absl::StrCat("kernel ", kernel, " raised ", error.kind,
                                                  error.kind.empty() ? "" : ": ", error.message));
}

absl::Status CallKernel(OpKernelContext* context, const Signature& call,
                        const InstalledKernel& kernel, const OutputShapes& outputs,
                        absl::Span<const Tensor> packed, Updates updates) {
  const KernelRecord& record = kernel.record;
  Tensors tensors;
  Copies copies;
  int64_t* dims = const_cast<int64_t*>(call.dims.data());  // the ABI has no const
  for (int i = 0; i < context->num_inputs(); ++i) {
    const Tensor& input = context->input(i);
    tensors.push_back(Describe(input, dims));
    dims += input.dims();
    absl::Status aligned = Align(context, record.alignment, input, &tensors.back(), &copies);
    if (!aligned.ok()) return aligned;
    if (record.in_shapes.ranks[i] == Signature::kOfValue) {
      tensors.back().ndim = 1;
      tensors.back().shape = const_cast<int64_t*>(call.Value(i));
    }
  }
  WrittenVariables written;
  absl::Status status = AllocateOutputs(context, record, outputs, updates, &written);
  if (!status.ok() || outputs.all_empty) return status;
  for (int i = 0; i < context->num_outputs(); ++i) {
    int64_t* const sizes = const_cast<int64_t*>(outputs.dims[i].data());
    tensors.push_back(Describe(*context->mutable_output(i), sizes));
  }
  absl::InlinedVector<int64_t, 2> sizes;
  for (const Tensor& argument : packed) sizes.push_back(argument.NumElements());
  for (size_t i = 0; i < packed.size(); ++i) tensors.push_back(Describe(packed[i], &sizes[i]));
  status = Run(context, record, kernel.function, &tensors);
  if (status.ok()) {
    Count(GlobalStats().in_place_updates, written.size());
    return status;
  }
  ReleaseOutputs(context);
  // An index is found to be out of range before anything is written over an input.
  if (written.size() == 0 || absl::IsOutOfRange(status)) return status;
  return absl::DataLossError(
      absl::StrCat(status.message(), "; it may have updated parts of variables: restore them"));
}

absl::Status CallPacker(OpKernelContext* context, const InstalledKernel& kernel, size_t i,
                        Tensor* packed) {
  const PackedArgument& argument = kernel.record.packed[i];
  int64_t elements = argument.elements;
  absl::Status status =
      context->allocate_temp(argument.dtype, tensorflow::TensorShape({elements}), packed);
  if (!status.ok()) return status;
  const Tensor& constant = context->input(argument.source);
  auto dims = constant.shape().dim_sizes();
  Tensors tensors = {Describe(constant, dims.data()), Describe(*packed, &elements)};
  return Run(context, kernel.record, kernel.packers[i], &tensors);
}

}  // namespace composite
