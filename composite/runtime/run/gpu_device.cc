#include "composite/runtime/run/gpu_device.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor_internal.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/types.h"
#include "xla/stream_executor/stream.h"

namespace composite {
namespace {

using tensorflow::DeviceBase;
using tensorflow::DeviceFactory;

// The driver's handle of a stream. Both casts are those of TensorFlow's own kernels.
void* HandleOf(stream_executor::Stream* stream) {
  if (void* handle = stream->platform_specific_handle().stream) return handle;
  return static_cast<stream_executor::CStream*>(stream)->Handle();  // a plugin's
}

// The driver whose streams those of GPUs are.
absl::StatusOr<const CudaDriver*> DriverOf(const std::string& type) {
  const auto& driver = CudaDriver::Get();
  if (!driver.ok() || !DeviceFactory::IsPluggableDevice(type) || (*driver)->is_named()) {
    return driver;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no driver is known for the plugin that has devices of type ", type));
}

}  // namespace

absl::StatusOr<CudaDevice> CudaDeviceOf(const DeviceBase& device) {
  const DeviceBase::AcceleratorDeviceInfo* info = device.tensorflow_accelerator_device_info();
  if (info == nullptr || info->stream == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(device.name(), " has no stream"));
  }
  absl::StatusOr<const CudaDriver*> driver = DriverOf(tensorflow::DEVICE_GPU);
  if (!driver.ok()) return driver.status();
  return (*driver)->DeviceOfStream(HandleOf(info->stream));
}

Device DeviceOf(const CudaDevice& device) { return {Device::kCuda, device.level}; }

Device DeviceOf(const std::string& type, const DeviceBase& device) {
  if (type == tensorflow::DEVICE_CPU) return HostCpu();
  const Device other{Device::kOther, 0};
  if (type != tensorflow::DEVICE_GPU) return other;
  const absl::StatusOr<CudaDevice> gpu = CudaDeviceOf(device);
  return gpu.ok() ? DeviceOf(*gpu) : other;
}

Device DeviceOfType(const std::string& type) {
  if (type.empty() || type == tensorflow::DEVICE_CPU) return HostCpu();
  const Device other{Device::kOther, 0};
  if (type != tensorflow::DEVICE_GPU) return other;
  const absl::StatusOr<const CudaDriver*> driver = DriverOf(type);
  if (!driver.ok()) return other;
  const absl::StatusOr<CudaDevice> gpu = (*driver)->DeviceAt(0);
  return gpu.ok() ? DeviceOf(*gpu) : other;
}

std::string WhyWithoutKernels(const std::string& type) {
  if (type != tensorflow::DEVICE_GPU) return "";
  return std::string(DriverOf(type).status().message());
}

void* StreamOf(tensorflow::OpKernelContext* context) {
  return HandleOf(context->op_device_context()->stream());
}

}  // namespace composite
