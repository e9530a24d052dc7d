// What a module of composite.hybrid says of itself, see composite/hybrid/structure.py.
#ifndef COMPOSITE_RUNTIME_HYBRID_DESCRIPTION_H_
#define COMPOSITE_RUNTIME_HYBRID_DESCRIPTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

class HybridDescription {
 public:
  // InvalidArgument: the text is no description. FailedPrecondition: it is of another version, or
  // the module's kernels are for another CPU.
  static absl::StatusOr<HybridDescription> Parse(std::string json);

  const std::string& json() const { return json_; }
  int inputs() const { return static_cast<int>(specs_.size()); }
  int outputs() const { return outputs_; }

  // InvalidArgument, with what the module takes.
  absl::Status CheckInputs(absl::Span<const tensorflow::Tensor> inputs) const;

 private:
  struct Spec {
    tensorflow::DataType dtype;
    tensorflow::PartialTensorShape shape;
  };

  std::string json_;
  std::string name_;
  std::vector<Spec> specs_;
  int outputs_ = 0;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_HYBRID_DESCRIPTION_H_
