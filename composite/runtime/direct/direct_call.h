// What runs on the thread of its caller, on the tensors that it is given: no op of TensorFlow's is
// executed for the call, nothing is placed, and nothing is recorded on tapes.
#ifndef COMPOSITE_RUNTIME_DIRECT_DIRECT_CALL_H_
#define COMPOSITE_RUNTIME_DIRECT_DIRECT_CALL_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// Thread-safe. Has no code outside of this header but its virtual functions, by which another
// library may use it.
class DirectCall {
 public:
  virtual ~DirectCall() = default;

  const tensorflow::DataTypeVector& arguments() const { return arguments_; }
  const tensorflow::DataTypeVector& results() const { return results_; }

  // Sets one result for each of results(), for tensors of the dtypes of arguments(), of which each
  // has an owner beside the caller of this. An error changes nothing but the results.
  virtual absl::Status Call(absl::Span<const tensorflow::Tensor* const> arguments,
                            absl::Span<tensorflow::Tensor> results) const = 0;

 protected:
  tensorflow::DataTypeVector arguments_;
  tensorflow::DataTypeVector results_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_DIRECT_CALL_H_
