// Python's format(value, specification) of values that are known now.
#ifndef COMPOSITE_RUNTIME_VALUE_FORMAT_H_
#define COMPOSITE_RUNTIME_VALUE_FORMAT_H_

#include <string>

#include "absl/status/statusor.h"
#include "composite/runtime/value/value.h"

namespace composite {

// InvalidArgument for a specification that Python refuses for the value, or that is not supported:
// the types `c` and `n`, `z`, and `#` without a type.
absl::StatusOr<std::string> Format(const Value& value, const std::string& specification);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VALUE_FORMAT_H_
