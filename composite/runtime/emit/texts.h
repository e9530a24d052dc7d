// Python's functions that make text of values: str(), repr(), ascii(), format(), and str.join. They
// are computed where the values are known, wait for dims, and refuse tensors.
#ifndef COMPOSITE_RUNTIME_EMIT_TEXTS_H_
#define COMPOSITE_RUNTIME_EMIT_TEXTS_H_

#include "absl/strings/string_view.h"
#include "composite/runtime/emit/numbers.h"

namespace composite {

// Null for another name. format() takes its value and its specification, join() its items and its
// separator.
const BuiltinRule* FindTextRule(absl::string_view name);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_TEXTS_H_
