#include "composite/runtime/foreign/call_op.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/cuda/driver.h"
#include "composite/runtime/foreign/dlpack.h"
#include "composite/runtime/foreign/library.h"
#include "composite/runtime/foreign/tvm_device.h"
#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/run/gpu_device.h"
#include "composite/runtime/run/kernel_host.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {

using tensorflow::AttrSlice;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

absl::Status CheckDtypes(const char* what, tensorflow::DataTypeSlice dtypes, int count) {
  for (int i = 0; i < count; ++i) {
    if (ToDlpack(dtypes[i]).code == kNoAbiCode) {
      return absl::InvalidArgumentError(absl::StrCat(what, " ", i, " is ",
                                                     tensorflow::DataTypeString(dtypes[i]),
                                                     ", which no function of TVM takes"));
    }
  }
  return absl::OkStatus();
}

// Waits until the copy is the stream's next work, and not until it is made.
absl::Status CopyOnDevice(OpKernelContext* context, const Tensor& from, Tensor* to) {
  absl::Status made;
  absl::Notification given;
  context->op_device_context()->CopyTensorInSameDevice(
      &from, static_cast<tensorflow::Device*>(context->device()), to,
      [&](const absl::Status& status) {
        made = status;
        given.Notify();
      });
  given.WaitForNotification();
  return made;
}

}  // namespace

TvmCallOp::TvmCallOp(OpKernelConstruction* context) : OpKernel(context) {
  const AttrSlice attrs(context->def());
  std::string function;
  OP_REQUIRES_OK(context, GetNodeAttr(attrs, "function", &function));
  const std::pair<std::string, std::string> names =
      absl::StrSplit(function, absl::MaxSplits(':', 1));
  name_ = names.second;
  on_gpu_ = context->device_type() == tensorflow::DEVICE_GPU;
  OP_REQUIRES_OK(context, Named(rules_.Read(attrs)));
  const tensorflow::AttrValue* const device = attrs.Find(kTvmDeviceAttr);
  if (device != nullptr && !device->s().empty()) {
    auto found = FindTvmDevice(device->s(), tvm_ffi::ByName());
    OP_REQUIRES_OK(context, Named(found.status()));
    OP_REQUIRES(context, !rules_.returns,
                Named(absl::InvalidArgumentError(
                    absl::StrCat("it returns its outputs, and on ", device->s(),
                                 " only functions run that are passed them"))));
    tvm_device_ = *found;
  }
  OP_REQUIRES_OK(context, Named(CheckDtypes("input", context->input_types(), rules_.inputs)));
  OP_REQUIRES_OK(context,
                 Named(CheckDtypes("output", context->output_types(), context->num_outputs())));
  auto loaded = FindForeignLibrary(names.first);
  OP_REQUIRES_OK(context, Named(loaded.status()));
  auto found = (*loaded)->Find(name_);
  OP_REQUIRES_OK(context, found.status());
  function_ = std::move(found->function);
  for (const PartialTensorShape& shape : rules_.shapes) {
    stated_.emplace_back();
    if (shape.IsFullyDefined()) shape.AsTensorShape(&stated_.back());
  }
}

void TvmCallOp::Compute(OpKernelContext* context) {
  std::vector<Tensor> copies;
  Inputs inputs;
  if (!tvm_device_.has_value()) {
    OP_REQUIRES_OK(context, AlignedInputs(context, &copies, &inputs));
  }
  OP_REQUIRES_OK(context, rules_.returns ? Make(context, inputs) : Fill(context, inputs));
}

absl::Status TvmCallOp::Named(const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("function ", name_, ": ", status.message()));
}

absl::Status TvmCallOp::AlignedInputs(OpKernelContext* context, std::vector<Tensor>* copies,
                                      Inputs* inputs) const {
  for (int i = 0; i < rules_.inputs; ++i) {
    const Tensor& input = context->input(i);
    inputs->push_back(&input);
    if (tvm_abi::IsAligned(input.data())) continue;
    if (copies->empty()) copies->reserve(rules_.inputs);  // inputs point to them
    copies->emplace_back();
    Tensor& copy = copies->back();
    TF_RETURN_IF_ERROR(context->allocate_temp(input.dtype(), input.shape(), &copy));
    if (on_gpu_) {
      TF_RETURN_IF_ERROR(CopyOnDevice(context, input, &copy));
    } else {
      std::memcpy(copy.data(), input.data(), input.TotalBytes());
    }
    Count(GlobalStats().copies);
    inputs->back() = &copy;
  }
  return absl::OkStatus();
}

absl::Status TvmCallOp::KnownShape(OpKernelContext* context, int output, int* given,
                                   TensorShape* shape) const {
  const int source = rules_.shape_of[output];
  if (source != kGiven) {
    *shape = source == kStated ? stated_[output] : context->input(source).shape();
    return absl::OkStatus();
  }
  const Tensor& vector = context->input((*given)++);
  if (vector.dims() != 1) {
    return Named(absl::InvalidArgumentError(absl::StrCat(
        "the shape of output ", output, " is a tensor of rank ", vector.dims(), ", not 1")));
  }
  const auto dims = vector.flat<int64_t>();
  absl::Status status =
      TensorShape::BuildTensorShape(absl::MakeConstSpan(dims.data(), dims.size()), shape);
  if (status.ok()) return status;
  return Named(absl::InvalidArgumentError(
      absl::StrCat("the shape of output ", output, " is none: ", status.message())));
}

absl::Status TvmCallOp::Fill(OpKernelContext* context, const Inputs& inputs) {
  Outputs outputs;
  int given = rules_.inputs;
  for (int i = 0; i < context->num_outputs(); ++i) {
    TensorShape shape;
    TF_RETURN_IF_ERROR(KnownShape(context, i, &given, &shape));
    Tensor* output = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(i, shape, &output));
    outputs.push_back(output);
  }
  if (on_gpu_) return FillOnGpu(context, inputs, outputs);
  if (tvm_device_.has_value()) return FillThere(context, outputs);
  KernelHost host(context->device());
  return function_->Fill(host.host(), inputs, outputs);
}

absl::Status TvmCallOp::FillThere(OpKernelContext* context, const Outputs& outputs) const {
  Inputs inputs;
  for (int i = 0; i < rules_.inputs; ++i) inputs.push_back(&context->input(i));
  auto tensors = DeviceTensors::Of(*tvm_device_, inputs, outputs);
  TF_RETURN_IF_ERROR(Named(tensors.status()));
  KernelHost host(context->device());
  TF_RETURN_IF_ERROR(function_->Run(host.host(), tensors->all()));
  return Named(tensors->CopyBack(outputs));
}

absl::Status TvmCallOp::FillOnGpu(OpKernelContext* context, const Inputs& inputs,
                                  const Outputs& outputs) const {
  auto device = CudaDeviceOf(*context->device());
  TF_RETURN_IF_ERROR(Named(device.status()));
  const CudaScope scope(**CudaDriver::Get(), device->context);
  TF_RETURN_IF_ERROR(scope.status());
  return function_->FillOn({{tvm_abi::kCuda, device->number}, StreamOf(context)}, inputs, outputs);
}

absl::Status TvmCallOp::Make(OpKernelContext* context, const Inputs& inputs) {
  auto made = function_->Make(inputs, output_types());
  TF_RETURN_IF_ERROR(made.status());
  int given = rules_.inputs;
  for (int i = 0; i < context->num_outputs(); ++i) {
    const TensorShape& shape = (*made)[i].shape();
    PartialTensorShape expected = rules_.shapes[i];
    if (rules_.shape_of[i] != kStated) {
      TensorShape known;
      TF_RETURN_IF_ERROR(KnownShape(context, i, &given, &known));
      expected = known;
    }
    if (!expected.IsCompatibleWith(shape)) {
      return Named(absl::InvalidArgumentError(absl::StrCat(
          "result ", i, " has shape ", shape.DebugString(), ", not ", expected.DebugString())));
    }
    context->set_output(i, (*made)[i]);
  }
  return absl::OkStatus();
}

}  // namespace composite
