// What kernels see of the device that TensorFlow gives a node.
#ifndef COMPOSITE_RUNTIME_RUN_GPU_DEVICE_H_
#define COMPOSITE_RUNTIME_RUN_GPU_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "composite/runtime/cuda/driver.h"
#include "composite/runtime/kernels/machine.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

// A GPU that TensorFlow uses, as the driver knows it. FailedPrecondition when no driver does: there
// is none, or the device is of a plugin whose streams are not the driver's.
absl::StatusOr<CudaDevice> CudaDeviceOf(const tensorflow::DeviceBase& device);

// The device of a node, which is of a TensorFlow device type. One without kernels is kOther. Of a
// CPU nothing is read: TensorFlow folds constants on devices that know next to nothing.
Device DeviceOf(const std::string& type, const tensorflow::DeviceBase& device);
Device DeviceOf(const CudaDevice& device);

// The device of a TensorFlow device type, "CPU", "GPU", ...; "" is the CPU. Of several GPUs the
// first.
Device DeviceOfType(const std::string& type);

// Why nodes on devices of a type have no kernels; empty for a type that is no GPU's.
std::string WhyWithoutKernels(const std::string& type);

// The stream of TensorFlow's that work of this call belongs to, as the driver knows it; the device
// must be one that CudaDeviceOf takes.
void* StreamOf(tensorflow::OpKernelContext* context);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_GPU_DEVICE_H_
