// Reads of variables whose tensors know whose contents they are: so a kernel may write what a
// variable is to hold over what it holds.
#ifndef COMPOSITE_RUNTIME_VARIABLES_CONTENTS_H_
#define COMPOSITE_RUNTIME_VARIABLES_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/refcount.h"

namespace composite {

// What a variable holds, in its buffer. Its lock has to be held.
tensorflow::Tensor ContentsOf(tensorflow::Var* variable);

// The variables that a kernel writes to, which nobody else reads or writes as long as this lives.
class WrittenVariables {
 public:
  WrittenVariables() = default;
  ~WrittenVariables();
  WrittenVariables(const WrittenVariables&) = delete;
  WrittenVariables& operator=(const WrittenVariables&) = delete;

  // The tensor of the variable whose contents `read` is, an input of the node that the variable's
  // update (CompositeUpdateVariable) waits for. Empty unless these two nodes and the variable are
  // all that have the buffer, it has this shape and lies at a multiple of `alignment` bytes.
  absl::optional<tensorflow::Tensor> Take(const tensorflow::Tensor& read,
                                          const tensorflow::TensorShape& shape, size_t alignment);

  // How many there are.
  int64_t size() const { return static_cast<int64_t>(locked_.size()); }

 private:
  std::vector<tensorflow::core::RefCountPtr<tensorflow::Var>> locked_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VARIABLES_CONTENTS_H_
