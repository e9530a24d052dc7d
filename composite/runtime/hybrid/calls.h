// The functions that a module of composite.hybrid calls, as in composite/hybrid/runtime.py.
#ifndef COMPOSITE_RUNTIME_HYBRID_CALLS_H_
#define COMPOSITE_RUNTIME_HYBRID_CALLS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/hybrid/module_parts.h"
#include "composite/runtime/launch/tvm_abi.h"

namespace composite {

// Of one VM, which runs one call at a time. Calls of several VMs at once write to no memory that
// they share, but for what TensorFlow's sessions write.
class HybridCalls {
 public:
  static constexpr char kCallTf[] = "composite.hybrid.call_tf";
  static constexpr char kCallKernel[] = "composite.hybrid.call_kernel";
  static constexpr char kCallTfOnce[] = "composite.hybrid.call_tf_once";
  static constexpr char kMemory[] = "composite.hybrid.memory";
  static constexpr char kRequire[] = "composite.hybrid.require";
  // TVM 0.27's own, which takes its memory from a pool that all VMs of a process lock.
  static constexpr char kSizes[] = "vm.builtin.alloc_shape_heap";

  using Kernels = std::map<std::string, tvm_abi::Function, std::less<>>;
  // What all VMs of a module call.
  struct Module {
    const Kernels kernels;  // by their names
    ModuleParts parts;
  };
  explicit HybridCalls(std::shared_ptr<Module> module) : module_(std::move(module)) {}

  // (digest, graph, inputs...) -> outputs. A graph's part is made at its first call, and kept.
  absl::StatusOr<tvm_ffi::Value> CallTf(absl::Span<const tvm_abi::Any> arguments);
  // (kernel, name, barriers, digest, graph, number of inputs, of outputs, inputs..., outputs...,
  // packed...): has the kernel of this name fill the outputs. What it leaves to TensorFlow is a
  // call of the graph, unless the digest is empty. Then an input that the kernel does not read may
  // be two arguments, its shape and its dtype. Of the kernel as TVM has it, nothing is used.
  absl::StatusOr<tvm_ffi::Value> CallKernel(absl::Span<const tvm_abi::Any> arguments);
  // The same as CallTf, but that the module calls a graph once, and what it returned is returned
  // again.
  absl::StatusOr<tvm_ffi::Value> CallTfOnce(absl::Span<const tvm_abi::Any> arguments);
  // (shape, dtype) -> a tensor of its own, which nothing has written into.
  static absl::StatusOr<tvm_ffi::Value> Memory(absl::Span<const tvm_abi::Any> arguments);
  // (VM, count) -> room for the sizes of a call, int64.
  static absl::StatusOr<tvm_ffi::Value> Sizes(absl::Span<const tvm_abi::Any> arguments);
  // (size, least, region): fails where a size of the call is less than the region's kernel takes.
  static absl::StatusOr<tvm_ffi::Value> Require(absl::Span<const tvm_abi::Any> arguments);

  // Why the last of these calls on this thread failed, of which TVM passes on the text; OK if none
  // did.
  static absl::Status TakeFailure();

 private:
  absl::StatusOr<const HybridPart*> PartOf(const tvm_abi::Any& digest, const tvm_abi::Any& graph);

  const std::shared_ptr<Module> module_;
  // What this VM has asked of the module's parts, by digests.
  absl::flat_hash_map<std::string, const HybridPart*> parts_;
  absl::flat_hash_map<std::string, tvm_ffi::Value> kept_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_CALLS_H_
