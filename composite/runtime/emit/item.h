// value[index] of lists, shapes, strings and ranges, as Python has it.
#ifndef COMPOSITE_RUNTIME_EMIT_ITEM_H_
#define COMPOSITE_RUNTIME_EMIT_ITEM_H_

#include "absl/status/statusor.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"

namespace composite {

// An index that only the run knows chooses from items of one kind (see one_of.h). InvalidArgument
// for a tensor (see subscript.h), for an index out of range and for one that is no int.
absl::StatusOr<Value> Item(const Value& value, const Value& index, Emitter* emitter);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_ITEM_H_
