// Custom calls of typed FFI handlers in what XLA compiles.
#ifndef COMPOSITE_RUNTIME_XLA_CUSTOM_CALL_H_
#define COMPOSITE_RUNTIME_XLA_CUSTOM_CALL_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "xla/hlo/builder/xla_builder.h"
#include "xla/shape.h"

namespace composite {

// A string as an attribute of a custom call has it.
std::string QuotedForXla(absl::string_view text);

struct CustomCall {
  std::string target;
  std::string attrs;  // "{name = value, ...}", in MLIR's words
  std::vector<xla::XlaOp> operands;
  std::vector<xla::Shape> operand_shapes;  // of static dims
  std::vector<xla::Shape> output_shapes;
  bool has_effects = false;
};

// The outputs of the call. Operands and outputs are row-major.
std::vector<xla::XlaOp> AddCustomCall(xla::XlaBuilder* builder, const CustomCall& call);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_CUSTOM_CALL_H_
