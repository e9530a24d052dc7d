// What a While carries from trip to trip, found by looking at trips until nothing changes.
#ifndef COMPOSITE_RUNTIME_EXPAND_CARRIED_VALUES_H_
#define COMPOSITE_RUNTIME_EXPAND_CARRIED_VALUES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/emit/inner_function.h"
#include "composite/runtime/emit/join.h"
#include "composite/runtime/graph/list_shapes.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"

namespace composite {

// Each part of the values is a loop variable, a tensor of one dtype, or keeps its first value. All
// start as variables where a tensor can stand for them; a part that a trip hands on untouched, or
// makes what it was before the loop, is none.
class CarriedValues {
 public:
  CarriedValues(std::vector<Value> starts, Emitter* outer);

  // The values at the start of a trip, as parameters of the function that is the trip.
  absl::StatusOr<std::vector<Value>> Enter(InnerFunction* function);

  // The parameters of the last Enter.
  std::vector<TensorValue> parameters() const;

  // Compares with what a trip gives of value `index`, entered and evaluated in `function`. Whether
  // another trip must be looked at, since types or shapes are wider than it had. An error is the
  // predicate of a sentence whose subject is the name of the value.
  absl::StatusOr<bool> Widen(int index, const Value& next, InnerFunction* function);

  // The variables: as tensors in the function that the trip was evaluated in, or before the loop.
  absl::StatusOr<std::vector<TensorValue>> Given(absl::Span<const Value> next,
                                                 InnerFunction* function) const;
  absl::StatusOr<std::vector<TensorValue>> Started(Emitter* outer) const;
  // The values when the variables are these.
  std::vector<Value> Filled(absl::Span<const TensorValue> variables) const;

  // Of the variables, after the last Widen.
  std::vector<tensorflow::PartialTensorShape> shapes() const;
  std::vector<ListShape> lists() const;
  size_t parts() const { return parts_.size(); }

 private:
  struct Part {
    Value start;
    PartType type;  // a tensor: a variable
    tensorflow::PartialTensorShape shape;
    ListShape list;         // if it is a list
    bool has_shape = true;  // false until a trip gives one: it starts with no value
    bool settled = false;   // it became a variable again, and stays one
    TensorValue parameter;  // of the last Enter
  };

  // What `field` is in each variable, in order.
  template <typename T>
  std::vector<T> OfVariables(T Part::* field) const;
  absl::StatusOr<bool> WidenPart(const Value& next, InnerFunction* function, Part* part);

  std::vector<Value> starts_;
  std::vector<Part> parts_;         // of all values, in order
  std::vector<size_t> first_part_;  // by value
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_CARRIED_VALUES_H_
