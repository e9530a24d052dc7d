// What TensorFlow runs of a module in one call.
#ifndef COMPOSITE_RUNTIME_HYBRID_PART_H_
#define COMPOSITE_RUNTIME_HYBRID_PART_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace composite {

// Thread-safe, as TensorFlow's sessions are.
class HybridPart {
 public:
  // Of a MetaGraphDef with the signature `call`, whose inputs and outputs are named by their
  // numbers. InvalidArgument: it is none. FailedPrecondition: it runs ops that nobody has defined.
  static absl::StatusOr<std::unique_ptr<HybridPart>> Make(absl::string_view content);
  ~HybridPart();

  absl::StatusOr<std::vector<tensorflow::Tensor>> Run(
      const std::vector<tensorflow::Tensor>& inputs) const;

 private:
  HybridPart(std::unique_ptr<tensorflow::Session> session,
             tensorflow::Session::CallableHandle function)
      : session_(std::move(session)), function_(function) {}

  const std::unique_ptr<tensorflow::Session> session_;
  const tensorflow::Session::CallableHandle function_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_PART_H_
