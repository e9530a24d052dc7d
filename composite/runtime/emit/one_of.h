// The tensor of several that an index chooses when the op runs.
#ifndef COMPOSITE_RUNTIME_EMIT_ONE_OF_H_
#define COMPOSITE_RUNTIME_EMIT_ONE_OF_H_

#include <vector>

#include "absl/status/statusor.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"

namespace composite {

// `tensors` have one dtype. They are stacked where they are known to have one shape, and branches
// of a Case otherwise. An index counts from the end where it is negative; one that is out of range
// is an error of the run.
absl::StatusOr<TensorValue> OneOf(const std::vector<TensorValue>& tensors, const Value& index,
                                  Emitter* emitter);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_ONE_OF_H_
