// Regions in what TensorFlow prepares to run: which functions get them, in the graph pass and where
// TensorFlow hands a function over to XLA without one.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_REGION_PASS_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_REGION_PASS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "composite/runtime/tensorflow/final_call.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// Adds regions to the graph of the pass and to the functions of its library. How many there are. In
// bodies of functions alone: what a session fetches or feeds, it finds by its name.
absl::StatusOr<int64_t> AddRegions(const tensorflow::GraphOptimizationPassOptions& options,
                                   const Devices& devices);

// function[0] of the library, which XLA is to compile, with regions in it and in those that it
// runs, as far as the calling thread or its name asks for regions: the functions that changed, and
// those of the regions. Empty if nothing did.
absl::StatusOr<tensorflow::FunctionDefLibrary> WithRegionsForXla(
    const tensorflow::FunctionDefLibrary& library);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_REGION_PASS_H_
