// The functions that a module of composite.hybrid calls, as in composite/hybrid/runtime.py.
#ifndef COMPOSITE_RUNTIME_HYBRID_CALLS_H_
#define COMPOSITE_RUNTIME_HYBRID_CALLS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/hybrid/part.h"
#include "composite/runtime/launch/tvm_abi.h"

namespace composite {

// Of one module, for all of its calls. Thread-safe.
class HybridCalls {
 public:
  static constexpr char kCallTf[] = "composite.hybrid.call_tf";
  static constexpr char kCallKernel[] = "composite.hybrid.call_kernel";
  static constexpr char kCallTfOnce[] = "composite.hybrid.call_tf_once";
  static constexpr char kRequire[] = "composite.hybrid.require";

  using Kernels = std::map<std::string, tvm_abi::Function, std::less<>>;
  // `kernels`: those of the module, by their names.
  explicit HybridCalls(Kernels kernels) : kernels_(std::move(kernels)) {}

  // (digest, graph, inputs...) -> outputs. A graph's part is made at its first call, and kept.
  absl::StatusOr<tvm_ffi::Value> CallTf(absl::Span<const tvm_abi::Any> arguments);
  // (kernel, name, barriers, digest, graph, number of inputs, of outputs, inputs..., outputs...,
  // packed...): has the kernel of this name fill the outputs. What it leaves to TensorFlow is a
  // call of the graph, unless the digest is empty. Of the kernel as TVM has it, nothing is used.
  absl::StatusOr<tvm_ffi::Value> CallKernel(absl::Span<const tvm_abi::Any> arguments);
  // The same, but that a graph is called once, and what it returned is returned again.
  absl::StatusOr<tvm_ffi::Value> CallTfOnce(absl::Span<const tvm_abi::Any> arguments);
  // (size, least, region): fails where a size of the call is less than the region's kernel takes.
  absl::StatusOr<tvm_ffi::Value> Require(absl::Span<const tvm_abi::Any> arguments);

  // Why the last of these calls on this thread failed, of which TVM passes on the text; OK if none
  // did.
  static absl::Status TakeFailure();

 private:
  absl::StatusOr<tvm_ffi::Value> Call(absl::Span<const tvm_abi::Any> arguments, Handles handles);
  absl::StatusOr<HybridPart*> PartOf(const tvm_abi::Any& digest, const tvm_abi::Any& graph,
                                     Handles handles);

  const Kernels kernels_;
  absl::Mutex mu_;
  HybridSession session_ ABSL_GUARDED_BY(mu_);  // made with the first part
  int made_ ABSL_GUARDED_BY(mu_) = 0;           // parts
  std::map<std::string, std::unique_ptr<HybridPart>, std::less<>> parts_ ABSL_GUARDED_BY(mu_);
  absl::Mutex keeping_;  // before mu_
  // What graphs returned, by digests.
  std::map<std::string, tvm_ffi::Value, std::less<>> kept_ ABSL_GUARDED_BY(keeping_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_CALLS_H_
