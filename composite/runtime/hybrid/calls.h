// The functions that a module of composite.hybrid calls, as in composite/hybrid/runtime.py.
#ifndef COMPOSITE_RUNTIME_HYBRID_CALLS_H_
#define COMPOSITE_RUNTIME_HYBRID_CALLS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/hybrid/part.h"
#include "composite/runtime/launch/tvm_abi.h"

namespace composite {

// Of one module, which serves one call at a time.
class HybridCalls {
 public:
  static constexpr char kCallTf[] = "composite.hybrid.call_tf";
  static constexpr char kCallTfOnce[] = "composite.hybrid.call_tf_once";
  static constexpr char kRequire[] = "composite.hybrid.require";

  // (digest, graph, inputs...) -> outputs. A graph's part is made at its first call, and kept.
  absl::StatusOr<tvm_ffi::Value> CallTf(absl::Span<const tvm_abi::Any> arguments);
  // The same, but that a graph is called once, and what it returned is returned again.
  absl::StatusOr<tvm_ffi::Value> CallTfOnce(absl::Span<const tvm_abi::Any> arguments);
  // (size, least, region): fails where a size of the call is less than the region's kernel takes.
  absl::StatusOr<tvm_ffi::Value> Require(absl::Span<const tvm_abi::Any> arguments);

  // Why the last of these calls failed, of which TVM passes on the text; OK if none did.
  absl::Status TakeFailure();

 private:
  absl::StatusOr<tvm_ffi::Value> Call(absl::Span<const tvm_abi::Any> arguments, Handles handles);
  absl::StatusOr<HybridPart*> PartOf(absl::Span<const tvm_abi::Any> arguments, Handles handles);
  absl::StatusOr<tvm_ffi::Value> Kept(absl::StatusOr<tvm_ffi::Value> answer);

  HybridSession session_;  // made with the first part
  int made_ = 0;           // parts
  std::map<std::string, std::unique_ptr<HybridPart>, std::less<>> parts_;
  std::map<std::string, tvm_ffi::Value, std::less<>> kept_;  // what graphs returned, by digests
  absl::Status failure_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_CALLS_H_
