// The resources of one call.
#ifndef COMPOSITE_RUNTIME_DIRECT_STEP_CONTAINER_H_
#define COMPOSITE_RUNTIME_DIRECT_STEP_CONTAINER_H_

#include <cstdint>
#include <string>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace composite {

// They end with it. `device` must outlive it.
class StepContainer : public tensorflow::ScopedStepContainer {
 public:
  StepContainer(tensorflow::Device& device, int64_t step)
      : ScopedStepContainer(step, [&device](const std::string& name) {
          device.resource_manager()->Cleanup(name).IgnoreError();
        }) {}
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_STEP_CONTAINER_H_
