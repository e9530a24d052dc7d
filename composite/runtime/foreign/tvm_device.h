// Devices that TVM has and TensorFlow does not, such as an accelerator on an FPGA: calls get their
// tensors copied there and back.
#ifndef COMPOSITE_RUNTIME_FOREIGN_TVM_DEVICE_H_
#define COMPOSITE_RUNTIME_FOREIGN_TVM_DEVICE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/foreign/function.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/launch/tvm_abi.h"

namespace composite {

// A device by TVM's name and its number, "ext_dev:1"; the number is 0 if none. InvalidArgument for
// another name, FailedPrecondition where this process has no such device. TVM's runtime is loaded.
absl::StatusOr<tvm_abi::Device> FindTvmDevice(absl::string_view name,
                                              const tvm_ffi::Libraries& libraries);

// The tensors of one call on such a device.
class DeviceTensors {
 public:
  // Room for all of them there, and copies of the inputs. Fails with what the device raises.
  static absl::StatusOr<DeviceTensors> Of(tvm_abi::Device device, const Inputs& inputs,
                                          const Outputs& outputs);

  // The inputs, and then the outputs.
  const std::vector<tvm_abi::Any>& all() const { return all_; }

  absl::Status CopyBack(const Outputs& outputs) const;

 private:
  absl::Status Allocate(tvm_abi::Device device, const tensorflow::Tensor& like);

  std::vector<tvm_ffi::Value> owned_;
  std::vector<tvm_abi::Any> all_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_TVM_DEVICE_H_
