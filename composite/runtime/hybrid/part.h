// What TensorFlow runs of a module: its parts, one call each, in one session.
#ifndef COMPOSITE_RUNTIME_HYBRID_PART_H_
#define COMPOSITE_RUNTIME_HYBRID_PART_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/hybrid/assets.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace composite {

// The session of a module, with whose resources its parts work. Thread-safe, and so are parts.
using HybridSession = std::shared_ptr<tensorflow::Session>;
absl::StatusOr<HybridSession> NewHybridSession();

// What becomes of handles that a part returns.
enum class Handles {
  kPassed,  // they are as TensorFlow has them, which takes none back
  kKept,    // the session keeps what they stand for, and takes them in other parts
};

class HybridPart {
 public:
  // Of a MetaGraphDef with the signature `call`, whose inputs and outputs are named by their
  // numbers; `name` is the part's own in the session. InvalidArgument: it is none.
  // FailedPrecondition: it runs ops that nobody has defined.
  static absl::StatusOr<std::unique_ptr<HybridPart>> Make(absl::string_view content,
                                                          absl::string_view name, Handles handles,
                                                          HybridSession session);
  ~HybridPart();

  absl::StatusOr<std::vector<tensorflow::Tensor>> Run(
      const std::vector<tensorflow::Tensor>& inputs) const;

 private:
  HybridPart(HybridSession session, tensorflow::Session::CallableHandle function,
             std::unique_ptr<AssetFolder> files)
      : session_(std::move(session)), function_(function), files_(std::move(files)) {}

  const HybridSession session_;
  const tensorflow::Session::CallableHandle function_;
  const std::unique_ptr<AssetFolder> files_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_PART_H_
