#include "composite/runtime/instantiate/placement.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::MemoryType;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;

// The CPU of the task that a device is of.
std::string HostOf(const std::string& device) {
  tensorflow::DeviceNameUtils::ParsedName name;
  tensorflow::DeviceNameUtils::ParseFullName(device, &name);
  return tensorflow::DeviceNameUtils::FullName(name.job, name.replica, name.task,
                                               tensorflow::DEVICE_CPU, 0);
}

}  // namespace

bool Placement::IsAllOn(const std::string& device) const {
  const auto here = [&device](const std::string& name) { return name == device; };
  return std::all_of(arguments.begin(), arguments.end(), here) &&
         std::all_of(results.begin(), results.end(), here);
}

absl::StatusOr<Placement> PlacementOf(const OpKernelContext& context) {
  const OpKernel& kernel = context.op_kernel();
  const std::string& device = context.device()->name();
  const std::string host = HostOf(device);
  Placement placement;
  absl::Status wrong;
  const auto place = [&](DataType dtype, MemoryType memory) {
    const MemoryType in_functions = tensorflow::MTypeFromDType(dtype);
    if (memory == in_functions) return device;
    if (memory == tensorflow::DEVICE_MEMORY) {
      wrong = absl::InternalError(absl::StrCat(kernel.type_string(), " was registered with ",
                                               tensorflow::DataTypeString(dtype),
                                               " in the memory of a device"));
    }
    return host;
  };
  for (int i = 0; i < kernel.num_inputs(); ++i) {
    const DataType dtype = kernel.input_type(i);
    placement.arguments.push_back(
        dtype == tensorflow::DT_RESOURCE
            ? context.input(i).scalar<tensorflow::ResourceHandle>()().device()
            : place(dtype, kernel.input_memory_types()[i]));
  }
  for (int i = 0; i < kernel.num_outputs(); ++i) {
    const DataType dtype = kernel.output_type(i);
    // A resource is where the op that makes it puts it.
    placement.results.push_back(
        dtype == tensorflow::DT_RESOURCE ? "" : place(dtype, kernel.output_memory_types()[i]));
  }
  if (!wrong.ok()) return wrong;
  return placement;
}

}  // namespace composite
