// Values on paths that a tensor chooses between: what an If gives, what a While carries. Lists stay
// lists; their parts, and everything else, are one known value on all paths or a tensor of one
// dtype.
#ifndef COMPOSITE_RUNTIME_EMIT_JOIN_H_
#define COMPOSITE_RUNTIME_EMIT_JOIN_H_

#include "absl/status/statusor.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"

namespace composite {

// What stands for a part on all paths.
struct PartType {
  bool is_tensor = false;  // else it is the same value everywhere
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  bool weak = false;  // a number of Python's

  bool operator==(const PartType& other) const {
    return is_tensor == other.is_tensor && dtype == other.dtype && weak == other.weak;
  }
};

// The same known value, or the same tensor of the same graph.
bool Same(const Value& a, const Value& b);

// The parts of a value, in order; a value that is no list is its own.
void AppendParts(const Value& value, Value::List* parts);
// `like` with other parts, taken from `next` on.
Value WithParts(const Value& like, const Value** next);
// Whether lists have the same lengths, at all depths.
bool SameStructure(const Value& a, const Value& b);

// The type of a part that is one value; not a tensor for None, strings, dtypes, shapes.
PartType TypeOf(const Value& part);
// The type that two parts meet in: equal dtypes, or a number that adopts the dtype of the tensor,
// or two numbers. InvalidArgument says what the two are.
absl::StatusOr<PartType> Meet(const Value& a, const Value& b);

// A part as a tensor of that type. One that has no value yet is never read: zeros will do, of the
// shape that it has later, if that is known, since gradients and XLA want one shape.
absl::StatusOr<TensorValue> ToPart(const Value& part, const PartType& type, Emitter* emitter,
                                   const tensorflow::PartialTensorShape& later = {});
// The part that a tensor of that type stands for.
Value FromPart(TensorValue tensor, const PartType& type);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_JOIN_H_
