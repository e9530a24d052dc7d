#include "composite/runtime/instantiate/private_runtime.h"

#include <memory>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/common_runtime/single_threaded_cpu_device.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/version.h"

namespace composite {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::FunctionLibraryRuntime;

// The classes of TF 2.21 that a session makes of its own; never destroyed, since kernels of any
// thread may use them while the process exits.
class Private {
 public:
  Private()
      // A device of TensorFlow's usual kind would start the pool of the whole process, with default
      // options, before the user has said how large it is to be.
      : devices_(std::unique_ptr<tensorflow::Device>(
            tensorflow::NewSingleThreadedCpuDevice(tensorflow::Env::Default()))),
        library_(tensorflow::OpRegistry::Global(), tensorflow::FunctionDefLibrary()),
        runtime_(&devices_, tensorflow::Env::Default(), /*config=*/nullptr, TF_GRAPH_DEF_VERSION,
                 &library_, tensorflow::OptimizerOptions()) {}

  FunctionLibraryRuntime* runtime() {
    return runtime_.GetFLR(devices_.ListDevices().front()->name());
  }

 private:
  tensorflow::StaticDeviceMgr devices_;
  FunctionLibraryDefinition library_;
  tensorflow::ProcessFunctionLibraryRuntime runtime_;
};

}  // namespace

FunctionLibraryRuntime* PrivateRuntime() {
  static auto* made = new Private();
  return made->runtime();
}

}  // namespace composite
