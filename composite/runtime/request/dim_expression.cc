#include "composite/runtime/request/dim_expression.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "composite/runtime/base/dim_arithmetic.h"

namespace composite {
namespace {

absl::Status NotOne(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(text, ": ", why));
}

}  // namespace

absl::StatusOr<DimExpression> DimExpression::Parse(absl::string_view text, int symbols) {
  DimExpression expression;
  int depth = 0;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    Token token{'n', 0};
    if (word == "+" || word == "-" || word == "*" || word == "//" || word == "%") {
      token.op = word[0];
      depth -= 1;
      if (depth < 1) return NotOne(text, "an operator lacks its operands");
    } else {
      if (word[0] == 's') {
        token.op = 's';
        word.remove_prefix(1);
      }
      if (!absl::SimpleAtoi(word, &token.value)) return NotOne(text, "not a dim expression");
      if (token.op == 's' && (token.value < 0 || token.value >= symbols)) {
        return NotOne(text, "names a symbol that no input has");
      }
      depth += 1;
    }
    expression.tokens_.push_back(token);
  }
  if (depth != 1) return NotOne(text, "not one value");
  return expression;
}

absl::StatusOr<int64_t> DimExpression::Evaluate(absl::Span<const int64_t> symbols) const {
  absl::InlinedVector<int64_t, 4> stack;
  for (const Token& token : tokens_) {
    if (token.op == 'n' || token.op == 's') {
      stack.push_back(token.op == 'n' ? token.value : symbols[token.value]);
      continue;
    }
    const int64_t right = stack.back();
    stack.pop_back();
    if (!ApplyToDims(token.op, stack.back(), right, &stack.back())) {
      return absl::InvalidArgumentError("a dim of an output overflows or divides by zero");
    }
  }
  if (stack.back() < 0) return absl::InvalidArgumentError("a dim of an output is negative");
  return stack.back();
}

}  // namespace composite
