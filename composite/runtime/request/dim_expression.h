// A number of a call that follows from the sizes of its inputs, as records of kernels have it.
#ifndef COMPOSITE_RUNTIME_REQUEST_DIM_EXPRESSION_H_
#define COMPOSITE_RUNTIME_REQUEST_DIM_EXPRESSION_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace composite {

// A postfix expression over symbols: "s0 2 *".
class DimExpression {
 public:
  // InvalidArgument that says what the text is not.
  static absl::StatusOr<DimExpression> Parse(absl::string_view text, int symbols);

  // Python's meaning of // and %. InvalidArgument: division by zero, overflow, a negative result.
  absl::StatusOr<int64_t> Evaluate(absl::Span<const int64_t> symbols) const;

 private:
  struct Token {
    char op;        // 'n' number, 's' symbol, or one of + - * / %
    int64_t value;  // number, or index of the symbol
  };
  absl::InlinedVector<Token, 3> tokens_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REQUEST_DIM_EXPRESSION_H_
