// Where the arguments and results of a function lie that computes a node's outputs on a device.
//
// A kernel is given each tensor in the memory of its device or in that of the host, as its
// registration says. A function is given the names of devices, and which memory it is follows from
// the dtype: int32, for one, lies in the host's, and never elsewhere.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_PLACEMENT_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_PLACEMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace composite {

struct Placement {
  // The names of the devices.
  std::vector<std::string> arguments;
  std::vector<std::string> results;
  // The indices of those that the kernel has in the device's memory, and the function in the
  // host's.
  std::vector<int> copied_arguments;
  std::vector<int> copied_results;

  // Whether everything is on `device`, in the memory that is the dtype's.
  bool IsAllOn(const std::string& device) const;
};

// Of the node whose kernel is called, on a device that is no CPU. What lies in the host's memory,
// and would not by its dtype, is on the CPU; a resource is where its variable lies.
absl::StatusOr<Placement> PlacementOf(const tensorflow::OpKernelContext& context);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_PLACEMENT_H_
