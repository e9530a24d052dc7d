// What TensorFlow's optimizers make of an expansion, so that a node which runs it runs what the
// same ops written by hand would: grappler's rewrites, then the passes over a device's partition.
//
// Made in the background, once for all nodes that run the expansion with these shapes.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_OPTIMIZED_EXPANSION_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_OPTIMIZED_EXPANSION_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/expand/expansion.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace composite {

// A function with the arguments and results of the expansion.
struct OptimizedFunction {
  std::string name;
  std::shared_ptr<const tensorflow::FunctionLibraryDefinition> library;
};

// What the process has chosen of grappler's rewrites since TensorFlow started, for what is
// optimized from now on.
void SetRewriterOptions(tensorflow::RewriterConfig options);

// The rewrites that functions of `runtime` get: those of SetRewriterOptions, or else of its
// session.
tensorflow::RewriterConfig RewriterOptions(tensorflow::FunctionLibraryRuntime* runtime);

// For inputs of these shapes, dims of which may be unknown, on this device, which need not live.
// Takes milliseconds for ten nodes.
absl::StatusOr<OptimizedFunction> Optimize(const Expansion& expansion,
                                           absl::Span<const tensorflow::PartialTensorShape> shapes,
                                           const tensorflow::RewriterConfig& rewrites,
                                           const tensorflow::DeviceAttributes& device);

// The optimized function of an expansion, once it is there.
class OptimizedExpansion {
 public:
  // Starts the work, unless another holder of the same has done so.
  static std::shared_ptr<const OptimizedExpansion> Request(
      std::shared_ptr<const Expansion> expansion,
      std::vector<tensorflow::PartialTensorShape> shapes, tensorflow::RewriterConfig rewrites,
      tensorflow::DeviceAttributes device);

  OptimizedExpansion() = default;
  OptimizedExpansion(const OptimizedExpansion&) = delete;
  OptimizedExpansion& operator=(const OptimizedExpansion&) = delete;

  bool done() const { return done_.load(std::memory_order_acquire); }
  // Once it is done.
  const absl::StatusOr<OptimizedFunction>& function() const { return function_; }

 private:
  absl::StatusOr<OptimizedFunction> function_ = absl::UnavailableError("not made yet");
  std::atomic<bool> done_{false};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_OPTIMIZED_EXPANSION_H_
