#include "composite/runtime/run/host_tensors.h"

#include "composite/runtime/base/stats.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/logging.h"
#include "xla/stream_executor/device_address.h"
#include "xla/stream_executor/stream.h"

namespace composite {
namespace {

using stream_executor::DeviceAddressBase;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

stream_executor::Stream* StreamOfCall(OpKernelContext* context) {
  return context->op_device_context()->stream();
}

// Kernels do not write to inputs.
void* AddressOf(const Tensor& tensor) { return const_cast<char*>(tensor.tensor_data().data()); }

}  // namespace

void WhenStreamIsDone(OpKernelContext* context, std::function<void()> done) {
  auto* const device = static_cast<tensorflow::Device*>(context->device());
  const absl::Status status =
      context->op_device_context()->ThenExecute(device, StreamOfCall(context), done);
  if (status.ok()) return;
  const absl::Status waited = StreamOfCall(context)->BlockHostUntilDone();
  if (!waited.ok()) LOG(ERROR) << "a stream of " << device->name() << ": " << waited.message();
  done();
}

HostTensors::~HostTensors() {
  if (sources_.empty()) return;
  WhenStreamIsDone(context_, [held = std::move(sources_)] {});
}

absl::StatusOr<void*> HostTensors::Allocate(const Tensor& like) {
  absl::Status status =
      context_->allocate_temp(like.dtype(), like.shape(), &on_device_.emplace_back());
  if (!status.ok()) return status;
  return AddressOf(on_device_.back());
}

absl::StatusOr<void*> HostTensors::Input(int index) {
  const Tensor& input = context_->input(index);
  if (context_->input_memory_type(index) != tensorflow::HOST_MEMORY) return AddressOf(input);
  absl::StatusOr<void*> place = Allocate(input);
  if (!place.ok() || input.TotalBytes() == 0) return place;
  DeviceAddressBase to(*place, input.TotalBytes());
  absl::Status status =
      StreamOfCall(context_)->Memcpy(&to, input.tensor_data().data(), input.TotalBytes());
  if (!status.ok()) return status;
  sources_.push_back(input);
  Count(GlobalStats().copies);
  return place;
}

absl::StatusOr<void*> HostTensors::Output(int index) {
  const Tensor& output = *context_->mutable_output(index);
  if (context_->output_memory_type(index) != tensorflow::HOST_MEMORY) return AddressOf(output);
  absl::StatusOr<void*> place = Allocate(output);
  if (place.ok()) outputs_.emplace_back(index, *place);
  return place;
}

absl::Status HostTensors::CopyOutputs() {
  for (const auto& [index, place] : outputs_) {
    const Tensor& output = *context_->mutable_output(index);
    if (output.TotalBytes() == 0) continue;
    const DeviceAddressBase from(place, output.TotalBytes());
    absl::Status status =
        StreamOfCall(context_)->Memcpy(AddressOf(output), from, output.TotalBytes());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace composite
