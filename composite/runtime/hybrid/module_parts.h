// What the VMs of one open module have in common: what TensorFlow runs of it, in one session.
#ifndef COMPOSITE_RUNTIME_HYBRID_MODULE_PARTS_H_
#define COMPOSITE_RUNTIME_HYBRID_MODULE_PARTS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "composite/runtime/hybrid/part.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Thread-safe.
class ModuleParts {
 public:
  using Tensors = std::vector<tensorflow::Tensor>;

  // The part of a graph, made when it is first asked for. It lives as long as this object.
  absl::StatusOr<const HybridPart*> Find(absl::string_view digest, const tvm_abi::Any& graph);
  // What a graph returned, which is run once, for the first who asks.
  absl::StatusOr<Tensors> Kept(absl::string_view digest, const tvm_abi::Any& graph,
                               absl::FunctionRef<absl::StatusOr<Tensors>()> inputs);

 private:
  absl::StatusOr<std::unique_ptr<HybridPart>> Make(const tvm_abi::Any& graph, Handles handles)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  HybridSession session_ ABSL_GUARDED_BY(mu_);  // made with the first part
  int made_ ABSL_GUARDED_BY(mu_) = 0;           // parts
  std::map<std::string, std::unique_ptr<HybridPart>, std::less<>> parts_ ABSL_GUARDED_BY(mu_);
  absl::Mutex keeping_;  // before mu_
  std::map<std::string, Tensors, std::less<>> kept_ ABSL_GUARDED_BY(keeping_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_MODULE_PARTS_H_
