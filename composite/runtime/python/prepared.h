// A direct call that Python has made, and how it is called with eager tensors.
#ifndef COMPOSITE_RUNTIME_PYTHON_PREPARED_H_
#define COMPOSITE_RUNTIME_PYTHON_PREPARED_H_

#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/direct/direct_call.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
class EagerContext;
}  // namespace tensorflow

namespace composite {

using Tensors = absl::InlinedVector<const tensorflow::Tensor*, 8>;

// Whoever has one holds the GIL.
class Prepared {
 public:
  // Of a tuple: the address of a DirectCall, what that lives as long as, the capsule of the eager
  // context that it is for. Null, with Python's error set, if it is none.
  static std::shared_ptr<const Prepared> Make(PyObject* made);

  // Whether it is for this eager context.
  bool IsFor(const Object& capsule) const { return capsule.get() == capsule_.get(); }

  const DirectCall& call() const { return *call_; }

  // Leaves the GIL to others meanwhile: `tensors` must have owners that nobody takes them from. The
  // status is the call's. An object is null where Python's error is set.
  absl::StatusOr<std::vector<Object>> Run(
      absl::Span<const tensorflow::Tensor* const> tensors) const;

 private:
  Prepared(const DirectCall* call, Object keep, Object capsule, tensorflow::EagerContext* context);

  const DirectCall* const call_;
  const Object keep_;
  const Object capsule_;  // with it the context, and so the devices, would go
  tensorflow::EagerContext* const context_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PYTHON_PREPARED_H_
