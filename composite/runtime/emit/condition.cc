#include "composite/runtime/emit/condition.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/value/constant.h"
#include "composite/runtime/value/fold.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

absl::Status Ambiguous(int64_t elements) {
  return absl::InvalidArgumentError(
      absl::StrCat("the truth of a tensor of ", elements,
                   " elements is ambiguous: reduce it with tf.reduce_any or tf.reduce_all, or "
                   "choose element by element with tf.where"));
}

// A tensor of one element as a scalar. Where the size is not known the Reshape raises.
absl::StatusOr<TensorValue> AsScalar(TensorValue tensor, Emitter* emitter) {
  GraphBuilder& graph = emitter->graph();
  const int64_t rank = graph.Rank(tensor);
  if (rank == 0) return tensor;
  int64_t elements = rank < 0 ? -1 : 1;
  for (int d = 0; d < rank; ++d) {
    const int64_t size = graph.Dim(tensor, d);
    elements = size < 0 || elements < 0 ? -1 : elements * size;
  }
  if (elements >= 0 && elements != 1) return Ambiguous(elements);
  TF_ASSIGN_OR_RETURN(Value scalar,
                      emitter->Call("Reshape", {"tensor", "shape"},
                                    {Value::Tensor(std::move(tensor)), Value::MakeList({})}));
  return *scalar.as_tensor();
}

absl::StatusOr<TensorValue> TruthOf(const Value& value, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter->AsTensor(value));
  if (value.is_weak()) tensor.dtype = value.as_tensor()->dtype;
  TF_ASSIGN_OR_RETURN(tensor, AsScalar(std::move(tensor), emitter));
  tensor.weak = false;
  if (tensor.dtype == tensorflow::DT_BOOL) return tensor;
  const Value nothing = tensor.dtype == tensorflow::DT_STRING ? Value::String("") : Value::Int(0);
  TF_ASSIGN_OR_RETURN(Value truth, emitter->Call("NotEqual", {"x", "y"},
                                                 {Value::Tensor(std::move(tensor)), nothing}));
  return *truth.as_tensor();
}

}  // namespace

absl::StatusOr<Condition> Decide(const Value& value, Emitter* emitter) {
  const bool at_run_time = value.is_weak() && value.as_tensor()->fact == nullptr;
  if (at_run_time || (value.as_tensor() != nullptr && !value.is_weak())) {
    TF_ASSIGN_OR_RETURN(TensorValue tensor, TruthOf(value, emitter));
    return Condition{absl::nullopt, std::move(tensor)};
  }
  Value known = value;
  if (const tensorflow::Tensor* array = value.as_constant(); array != nullptr) {
    const std::vector<Value> elements = ElementsOf(*array);
    if (elements.size() != 1) return Ambiguous(array->NumElements());
    known = elements[0];
  } else if (value.as_list() == nullptr && value.as_shape() == nullptr) {
    // A list is true by its length and a shape by its rank, whatever they hold.
    TF_ASSIGN_OR_RETURN(known, emitter->Known(value));
  }
  TF_ASSIGN_OR_RETURN(bool truth, Truth(known));
  return Condition{truth, {}};
}

}  // namespace composite
