// A model that composite.hybrid.compile made one module of TVM's Relax VM, opened without Python.
#ifndef COMPOSITE_RUNTIME_HYBRID_MODEL_H_
#define COMPOSITE_RUNTIME_HYBRID_MODEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/foreign/tvm_module.h"
#include "composite/runtime/hybrid/calls.h"
#include "composite/runtime/hybrid/description.h"
#include "composite/runtime/hybrid/idle_machines.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Thread-safe. A VM has the stack of one call: there are as many as there were calls at one time.
// They share the module with its constants, and what TensorFlow runs.
class HybridModel {
 public:
  // Runs native code of the file. NotFound, PermissionDenied, InvalidArgument (it is no such
  // module, or damaged), FailedPrecondition (this process or CPU lacks what it needs).
  static absl::StatusOr<std::unique_ptr<HybridModel>> Open(const std::string& path,
                                                           const tvm_ffi::Libraries& libraries);

  const HybridDescription& description() const { return description_; }

  absl::StatusOr<std::vector<tensorflow::Tensor>> Call(absl::Span<const tensorflow::Tensor> inputs);

  // Whether a status of Call is TVM's: of a kernel, or of sizes that do not fit each other.
  static bool IsOfTvm(const absl::Status& status);

 private:
  HybridModel(TvmLibrary library, std::shared_ptr<HybridCalls::Module> module,
              HybridDescription description)
      : library_(std::move(library)),
        module_(std::move(module)),
        description_(std::move(description)) {}

  // Of a VM that nobody uses.
  absl::StatusOr<IdleMachines::Main> TakeMain();

  const TvmLibrary library_;
  const std::shared_ptr<HybridCalls::Module> module_;
  const HybridDescription description_;
  IdleMachines idle_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_MODEL_H_
