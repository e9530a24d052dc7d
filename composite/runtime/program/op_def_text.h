// OpDefs from the declaration strings that users write, by TensorFlow's own builder, and the checks
// that TensorFlow does only by ending the process.
#ifndef COMPOSITE_RUNTIME_PROGRAM_OP_DEF_TEXT_H_
#define COMPOSITE_RUNTIME_PROGRAM_OP_DEF_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

// Whether TensorFlow would take this OpDef: valid names, types that resolve, defaults of their
// attribute's type. OpRegistry aborts on the ones that fail here.
absl::Status CheckOpDef(const tensorflow::OpDef& op_def);

// InvalidArgument naming the string that does not parse.
absl::StatusOr<tensorflow::OpDef> ParseDeclaration(const std::string& name,
                                                   absl::Span<const std::string> inputs,
                                                   absl::Span<const std::string> attrs,
                                                   absl::Span<const std::string> outputs);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_OP_DEF_TEXT_H_
