// A model that composite.hybrid.compile made one module of TVM's Relax VM, opened without Python.
#ifndef COMPOSITE_RUNTIME_HYBRID_MODEL_H_
#define COMPOSITE_RUNTIME_HYBRID_MODEL_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/hybrid/calls.h"
#include "composite/runtime/hybrid/description.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Thread-safe: calls wait for one another, since the VM has the stack of one.
class HybridModel {
 public:
  // Runs native code of the file. NotFound, PermissionDenied, InvalidArgument (it is no such
  // module, or damaged), FailedPrecondition (this process or CPU lacks what it needs).
  static absl::StatusOr<std::unique_ptr<HybridModel>> Open(const std::string& path,
                                                           const tvm_ffi::Libraries& libraries);

  const HybridDescription& description() const { return description_; }

  absl::StatusOr<std::vector<tensorflow::Tensor>> Call(absl::Span<const tensorflow::Tensor> inputs);

 private:
  HybridModel(std::shared_ptr<HybridCalls> calls, tvm_ffi::Value main,
              HybridDescription description)
      : calls_(std::move(calls)), main_(std::move(main)), description_(std::move(description)) {}

  std::mutex one_call_;
  const std::shared_ptr<HybridCalls> calls_;
  const tvm_ffi::Value main_;  // which keeps the VM, and that the module
  const HybridDescription description_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_MODEL_H_
