#include "composite/runtime/run/gpu_call.h"

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/cuda/image.h"
#include "composite/runtime/cuda/launch_plan.h"
#include "composite/runtime/run/gpu_device.h"
#include "composite/runtime/run/host_tensors.h"
#include "composite/runtime/run/kernel_outputs.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace composite {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using Addresses = absl::InlinedVector<void*, 8>;
using Workspaces = absl::InlinedVector<Tensor, 2>;

absl::Status AppendTo(Addresses* addresses, const absl::StatusOr<void*>& address) {
  if (address.ok()) addresses->push_back(*address);
  return address.status();
}

// All else comes from TensorFlow's allocator, whose addresses are multiples of more.
bool InputsAreAligned(OpKernelContext* context, const LaunchPlan& plan) {
  for (const LaunchArgument& argument : plan.aligned) {
    if (argument.kind != LaunchArgument::kInput) continue;
    if (context->input_memory_type(argument.index) == tensorflow::HOST_MEMORY) continue;
    const auto address = reinterpret_cast<uintptr_t>(context->input(argument.index).data());
    if (address % kLaunchAlignment != 0) return false;
  }
  return true;
}

// The stream has the memory to itself until the work that it is given here is done: TensorFlow
// gives it to no other stream, and to later work of this one only.
absl::Status AllocateWorkspaces(OpKernelContext* context, const LaunchPlan& plan,
                                const SymbolValues& values, Workspaces* workspaces) {
  for (const DimExpression& expression : plan.workspaces) {
    absl::StatusOr<int64_t> bytes = expression.Evaluate(values);
    if (!bytes.ok()) return bytes.status();
    absl::Status status = context->allocate_temp(
        tensorflow::DT_UINT8, tensorflow::TensorShape({*bytes}), &workspaces->emplace_back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Launch(OpKernelContext* context, const Choice& choice, const CudaDevice& device) {
  const LaunchPlan& plan = *choice.kernel->record.launches;
  Workspaces workspaces;
  absl::Status status = AllocateWorkspaces(context, plan, choice.values, &workspaces);
  if (!status.ok()) return status;
  HostTensors tensors(context);
  Addresses inputs, outputs, places;
  for (int i = 0; i < context->num_inputs() && status.ok(); ++i) {
    status = AppendTo(&inputs, tensors.Input(i));
  }
  for (int i = 0; i < context->num_outputs() && status.ok(); ++i) {
    status = AppendTo(&outputs, tensors.Output(i));
  }
  if (!status.ok()) return status;
  for (const Tensor& workspace : workspaces) places.push_back(workspace.data());
  const CudaDriver& driver = **CudaDriver::Get();  // whose device it is
  const CudaScope scope(driver, device.context);
  if (!scope.status().ok()) return scope.status();
  status = LaunchAll(driver, device, plan, *choice.kernel->image,
                     {inputs, outputs, places, choice.values}, StreamOf(context));
  return status.ok() ? tensors.CopyOutputs() : status;
}

}  // namespace

absl::optional<absl::Status> CallGpuKernel(OpKernelContext* context, const Choice& choice,
                                           const CudaDevice& device) {
  const KernelRecord& record = choice.kernel->record;
  if (!InputsAreAligned(context, *record.launches)) return absl::nullopt;
  OutputShapes shapes;
  absl::Status status = ShapesOfOutputs(record, choice.values, &shapes);
  WrittenVariables written;
  if (status.ok()) status = AllocateOutputs(context, record, shapes, {}, &written);
  if (status.ok() && shapes.all_empty) return status;
  if (status.ok()) status = Launch(context, choice, device);
  if (status.ok()) return status;
  Count(GlobalStats().kernel_errors);
  ReleaseOutputs(context);
  return absl::Status(status.code(), absl::StrCat("kernel ", record.name, " of ", record.op,
                                                  " was not launched: ", status.message()));
}

}  // namespace composite
