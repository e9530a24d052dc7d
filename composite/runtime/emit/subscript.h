// value[...]: an item or a slice of a list, a shape or a string; any indexing of a tensor.
#ifndef COMPOSITE_RUNTIME_EMIT_SUBSCRIPT_H_
#define COMPOSITE_RUNTIME_EMIT_SUBSCRIPT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"

namespace composite {

// `spec` has a letter for each part of the subscript: i an index, s a slice, e an ellipsis, n a new
// axis. `inputs`: the value, then one for each index, three (start, stop, step; None if left out)
// for each slice. Python's meaning on lists, TensorFlow's Tensor.__getitem__ on tensors.
absl::StatusOr<Value> Subscript(absl::string_view spec, const std::vector<Value>& inputs,
                                Emitter* emitter);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_SUBSCRIPT_H_
