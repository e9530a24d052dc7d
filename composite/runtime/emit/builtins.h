// The functions of Python that a program calls: those that make lists, range(), enumerate(), zip(),
// reversed(), list(), tuple(); and those of numbers.h and texts.h.
#ifndef COMPOSITE_RUNTIME_EMIT_BUILTINS_H_
#define COMPOSITE_RUNTIME_EMIT_BUILTINS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/emit/emitter.h"
#include "composite/runtime/value/value.h"

namespace composite {

// More than anyone unrolls: a loop that does not end, or a range of a mistaken size, stops here.
constexpr int64_t kMaxItems = 65536;

// What iterating over a value gives: elements, dims, characters, the rows of a tensor.
absl::StatusOr<Value::List> Items(const Value& value, Emitter* emitter);

// `name` as Python has it; zip() and the like give lists. InvalidArgument for another name, and for
// arguments that Python refuses; NotYet for numbers that are not known.
absl::StatusOr<Value> Builtin(absl::string_view name, const std::vector<Value>& arguments,
                              Emitter* emitter);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EMIT_BUILTINS_H_
