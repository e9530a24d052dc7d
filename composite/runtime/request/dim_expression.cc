#include "composite/runtime/request/dim_expression.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace composite {
namespace {

absl::Status NotOne(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(text, ": ", why));
}

bool FloorDivide(int64_t a, int64_t b, int64_t* quotient, int64_t* rest) {
  if (b == 0 || b == -1) return false;  // -1: INT64_MIN overflows, and no shape divides by it
  *quotient = a / b;
  *rest = a % b;
  if (*rest != 0 && (*rest < 0) != (b < 0)) {
    *quotient -= 1;
    *rest += b;
  }
  return true;
}

bool Apply(char op, int64_t a, int64_t b, int64_t* result) {
  int64_t unused;
  switch (op) {
    case '+':
      return !__builtin_add_overflow(a, b, result);
    case '-':
      return !__builtin_sub_overflow(a, b, result);
    case '*':
      return !__builtin_mul_overflow(a, b, result);
    case '/':
      return FloorDivide(a, b, result, &unused);
    default:
      return FloorDivide(a, b, &unused, result);
  }
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
    if (!Apply(token.op, stack.back(), right, &stack.back())) {
      return absl::InvalidArgumentError("a dim of an output overflows or divides by zero");
    }
  }
  if (stack.back() < 0) return absl::InvalidArgumentError("a dim of an output is negative");
  return stack.back();
}

}  // namespace composite
