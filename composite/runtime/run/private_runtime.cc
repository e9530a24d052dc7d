#include "composite/runtime/run/private_runtime.h"

#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/public/version.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::FunctionLibraryRuntime;

// The classes of TF 2.21 that a session makes of its own; never destroyed, since kernels of any
// thread may use them while the process exits.
class Private {
 public:
  static absl::StatusOr<FunctionLibraryRuntime*> Make() {
    tensorflow::SessionOptions options;
    std::vector<std::unique_ptr<tensorflow::Device>> devices;
    tensorflow::DeviceFactory* factory = tensorflow::DeviceFactory::GetFactory("CPU");
    if (factory == nullptr) return absl::InternalError("TensorFlow has no CPU device factory");
    absl::Status status =
        factory->CreateDevices(options, "/job:localhost/replica:0/task:0", &devices);
    if (!status.ok()) return status;
    auto* made = new Private(options, std::move(devices));
    return made->runtime_.GetFLR(made->devices_.ListDevices().front()->name());
  }

 private:
  Private(const tensorflow::SessionOptions& options,
          std::vector<std::unique_ptr<tensorflow::Device>> devices)
      : devices_(std::move(devices)),
        library_(tensorflow::OpRegistry::Global(), tensorflow::FunctionDefLibrary()),
        runtime_(&devices_, tensorflow::Env::Default(), /*config=*/nullptr, TF_GRAPH_DEF_VERSION,
                 &library_, options.config.graph_options().optimizer_options()) {}

  tensorflow::StaticDeviceMgr devices_;
  FunctionLibraryDefinition library_;
  tensorflow::ProcessFunctionLibraryRuntime runtime_;
};

}  // namespace

absl::StatusOr<FunctionLibraryRuntime*> PrivateRuntime() {
  static const auto* runtime = new absl::StatusOr<FunctionLibraryRuntime*>(Private::Make());
  return *runtime;
}

}  // namespace composite
