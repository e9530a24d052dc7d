#include "composite/runtime/emit/operators.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/emit/condition.h"
#include "composite/runtime/value/constant.h"
#include "composite/runtime/value/fold.h"
#include "composite/runtime/value/fold_array.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;

using FoldUnaryFn = absl::StatusOr<Value> (*)(const Value&);

struct UnaryRule {
  const char* symbol;
  FoldUnaryFn fold;
  const char* numbers;  // TF op on numbers; null: refused; "": the tensor itself
  const char* bools;    // TF op on bool tensors
};

// How an operator acts on tensors.
enum class Form {
  kPlain,       // one op of two operands of one dtype
  kTrueDivide,  // ints are divided as floats
  kBitwise,     // another op for bools
  kMatMul,      // by rank
  kEqual,       // unequal shapes are unequal, as in TF 2
  kIdentity,    // `is`: a tensor is no known value
  kKnownOnly,   // no meaning on tensors
};

struct BinaryRule {
  const char* symbol;
  FoldBinaryFn fold;  // null: no meaning on numbers
  Form form;
  const char* op;     // TF op on tensors
  const char* bools;  // kBitwise: the op on bools
};

const UnaryRule* FindUnary(absl::string_view name) {
  static const auto* rules = new absl::flat_hash_map<absl::string_view, UnaryRule>({
      {"neg", {"-", &FoldNeg, "Neg", nullptr}},
      {"pos", {"+", &FoldPos, "", nullptr}},
      {"invert", {"~", &FoldInvert, "Invert", "LogicalNot"}},
      {"not", {"not", &FoldNot, nullptr, "LogicalNot"}},
  });
  auto it = rules->find(name);
  return it == rules->end() ? nullptr : &it->second;
}

const BinaryRule* FindBinary(absl::string_view name) {
  static const auto* rules = new absl::flat_hash_map<absl::string_view, BinaryRule>({
      {"add", {"+", &FoldAdd, Form::kPlain, "AddV2", nullptr}},
      {"sub", {"-", &FoldSub, Form::kPlain, "Sub", nullptr}},
      {"mul", {"*", &FoldMul, Form::kPlain, "Mul", nullptr}},
      {"truediv", {"/", &FoldTrueDiv, Form::kTrueDivide, "RealDiv", nullptr}},
      {"floordiv", {"//", &FoldFloorDiv, Form::kPlain, "FloorDiv", nullptr}},
      {"mod", {"%", &FoldMod, Form::kPlain, "FloorMod", nullptr}},
      {"pow", {"**", &FoldPow, Form::kPlain, "Pow", nullptr}},
      {"matmul", {"@", nullptr, Form::kMatMul, "MatMul", nullptr}},
      {"and", {"&", &FoldAnd, Form::kBitwise, "BitwiseAnd", "LogicalAnd"}},
      {"or", {"|", &FoldOr, Form::kBitwise, "BitwiseOr", "LogicalOr"}},
      {"xor", {"^", &FoldXor, Form::kBitwise, "BitwiseXor", "NotEqual"}},
      {"lshift", {"<<", &FoldLeftShift, Form::kKnownOnly, nullptr, nullptr}},
      {"rshift", {">>", &FoldRightShift, Form::kKnownOnly, nullptr, nullptr}},
      {"eq", {"==", &FoldEqual, Form::kEqual, "Equal", nullptr}},
      {"ne", {"!=", &FoldNotEqual, Form::kEqual, "NotEqual", nullptr}},
      {"lt", {"<", &FoldLess, Form::kPlain, "Less", nullptr}},
      {"le", {"<=", &FoldLessEqual, Form::kPlain, "LessEqual", nullptr}},
      {"gt", {">", &FoldGreater, Form::kPlain, "Greater", nullptr}},
      {"ge", {">=", &FoldGreaterEqual, Form::kPlain, "GreaterEqual", nullptr}},
      {"in", {"in", &FoldIn, Form::kKnownOnly, nullptr, nullptr}},
      {"not_in", {"not in", &FoldNotIn, Form::kKnownOnly, nullptr, nullptr}},
      {"is", {"is", &FoldIs, Form::kIdentity, nullptr, nullptr}},
      {"is_not", {"is not", &FoldIsNot, Form::kIdentity, nullptr, nullptr}},
  });
  auto it = rules->find(name);
  return it == rules->end() ? nullptr : &it->second;
}

// A weak value is a number of Python's: its tensor form has Python's widths.
Value AsStrong(const Value& value) {
  if (!value.is_weak()) return value;
  TensorValue tensor = *value.as_tensor();
  tensor.weak = false;
  return Value::Tensor(std::move(tensor));
}

absl::StatusOr<Value> CallOn(const char* op, const Value& a, const Value& b, Emitter* emitter) {
  return emitter->Call(op, {"x", "y"}, {a, b});
}

// An operand of arithmetic on weak values, as a tensor of `dtype`.
absl::StatusOr<Value> WeakOperand(const Value& value, DataType dtype, Emitter* emitter) {
  const Value strong = AsStrong(value);
  if (strong.as_tensor() != nullptr && strong.as_tensor()->dtype != dtype) {
    return emitter->Call("Cast", {"x", "DstT"}, {strong, Value::Type(dtype)});
  }
  const bool counts = strong.as_bool() && dtype != tensorflow::DT_BOOL;
  const Value number = counts ? Value::Int(*strong.as_bool() ? 1 : 0) : strong;
  TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter->ToTensor(number, dtype));
  return Value::Tensor(std::move(tensor));
}

// Numbers of which one is known only at run time: Python's rules for int and float, emitted.
absl::StatusOr<Value> BinaryWeak(const BinaryRule& rule, const Value& a, const Value& b,
                                 Emitter* emitter) {
  const auto is_number = [](const Value& v) { return v.is_weak() || v.is_number(); };
  const bool is_float = WeakType(a) == tensorflow::DT_DOUBLE ||
                        WeakType(b) == tensorflow::DT_DOUBLE || rule.form == Form::kTrueDivide;
  const bool arithmetic = rule.form == Form::kPlain || rule.form == Form::kTrueDivide;
  // An int to the power of an unknown int may be a float in Python: the type would be unknown.
  const bool open_power =
      rule.fold == &FoldPow && !is_float && (b.as_int() == nullptr || *b.as_int() < 0);
  const bool bits = rule.form == Form::kBitwise && !is_float;
  // A list can be repeated, for one.
  const bool other = !is_number(a) || !is_number(b);
  if (other || open_power || !(arithmetic || bits || rule.form == Form::kEqual)) {
    // Python has a result, and so has the expansion as soon as the numbers are known.
    TF_ASSIGN_OR_RETURN(Value x, emitter->Known(a));
    TF_ASSIGN_OR_RETURN(Value y, emitter->Known(b));
    return rule.fold(x, y);
  }
  if (rule.form == Form::kTrueDivide && b.is_number()) {
    TF_RETURN_IF_ERROR(rule.fold(Value::Int(1), b).status());  // whatever is divided by zero
  }
  const bool truths =
      bits && WeakType(a) == tensorflow::DT_BOOL && WeakType(b) == tensorflow::DT_BOOL;
  const DataType dtype = is_float ? tensorflow::DT_DOUBLE
                         : truths ? tensorflow::DT_BOOL
                                  : tensorflow::DT_INT64;
  TF_ASSIGN_OR_RETURN(Value x, WeakOperand(a, dtype, emitter));
  TF_ASSIGN_OR_RETURN(Value y, WeakOperand(b, dtype, emitter));
  TF_ASSIGN_OR_RETURN(Value result, CallOn(truths ? rule.bools : rule.op, x, y, emitter));
  TensorValue weak = *result.as_tensor();
  weak.weak = true;
  // Known at the run alone if one of them is.
  const bool both = a.is_weak() && b.is_weak();
  weak.fact = (both && a.as_tensor()->fact == nullptr) || !b.is_weak() ? a.as_tensor()->fact
                                                                       : b.as_tensor()->fact;
  return Value::Tensor(std::move(weak));
}

// As tf.truediv: small ints are divided as float32, larger ones as float64.
DataType QuotientType(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_UINT8:
    case tensorflow::DT_INT8:
    case tensorflow::DT_UINT16:
    case tensorflow::DT_INT16:
      return tensorflow::DT_FLOAT;
    case tensorflow::DT_INT32:
    case tensorflow::DT_UINT32:
    case tensorflow::DT_INT64:
    case tensorflow::DT_UINT64:
      return tensorflow::DT_DOUBLE;
    default:
      return dtype;
  }
}

// The dtype that two operands meet in: a tensor's of the graph before that of a constant array.
DataType CommonType(const Value& a, const Value& b) {
  for (const Value* v : {&a, &b}) {
    if (StrongType(*v) != tensorflow::DT_INVALID) return StrongType(*v);
  }
  return NaturalType(a.is_strong() ? a : b);
}

absl::StatusOr<Value> TrueDivide(const Value& a, const Value& b, Emitter* emitter) {
  const DataType dtype = CommonType(a, b);
  const DataType quotient = QuotientType(dtype);
  if (quotient == dtype) return CallOn("RealDiv", a, b, emitter);
  Value operands[2];
  for (int i = 0; i < 2; ++i) {
    TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter->ToTensor(i == 0 ? a : b, dtype));
    TF_ASSIGN_OR_RETURN(operands[i], emitter->Call("Cast", {"x", "DstT"},
                                                   {Value::Tensor(tensor), Value::Type(quotient)}));
  }
  return CallOn("RealDiv", operands[0], operands[1], emitter);
}

// As tf.matmul without arguments: MatMul when both are known to be matrices.
absl::StatusOr<Value> MatMul(const Value& a, const Value& b, Emitter* emitter) {
  const DataType dtype = CommonType(a, b);
  TF_ASSIGN_OR_RETURN(TensorValue x, emitter->ToTensor(a, dtype));
  TF_ASSIGN_OR_RETURN(TensorValue y, emitter->ToTensor(b, dtype));
  if (emitter->graph().Rank(x) == 2 && emitter->graph().Rank(y) == 2) {
    return emitter->Call("MatMul", {"a", "b"}, {Value::Tensor(x), Value::Tensor(y)});
  }
  return CallOn("BatchMatMulV2", Value::Tensor(x), Value::Tensor(y), emitter);
}

absl::StatusOr<Value> BinaryStrong(const BinaryRule& rule, const Value& a, const Value& b,
                                   Emitter* emitter) {
  const DataType dtype = CommonType(a, b);
  switch (rule.form) {
    case Form::kPlain:
      // AddV2 is for numbers; Add joins strings as well.
      if (dtype == tensorflow::DT_STRING && rule.fold == &FoldAdd) {
        return CallOn("Add", a, b, emitter);
      }
      // TensorFlow's operator multiplies truths, its op does not.
      if (dtype == tensorflow::DT_BOOL && rule.fold == &FoldMul) {
        return CallOn("LogicalAnd", a, b, emitter);
      }
      return CallOn(rule.op, a, b, emitter);
    case Form::kTrueDivide:
      return TrueDivide(a, b, emitter);
    case Form::kMatMul:
      return MatMul(a, b, emitter);
    case Form::kBitwise:
      return CallOn(dtype == tensorflow::DT_BOOL ? rule.bools : rule.op, a, b, emitter);
    case Form::kEqual:
      if (a.is_none() || b.is_none()) return Value::Bool(rule.fold == &FoldNotEqual);
      return emitter->Call(rule.op, {"x", "y", "incompatible_shape_error"},
                           {a, b, Value::Bool(false)});
    case Form::kIdentity:
      if (a.is_none() || b.is_none()) return Value::Bool(rule.fold == &FoldIsNot);
      break;
    case Form::kKnownOnly:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", rule.symbol, "' has no meaning on tensors: ",
                                                 Describe(a), " ", rule.symbol, " ", Describe(b)));
}

// A shape in an expression is the sequence of its dims.
absl::StatusOr<Value> ShapeAsList(const Value& value, Emitter* emitter) {
  if (value.as_shape() == nullptr) return value;
  TF_ASSIGN_OR_RETURN(Value::List dims, emitter->Dims(*value.as_shape()));
  return Value::MakeList(std::move(dims), SequenceKind::kShape);
}

// list + list and list * int move values without looking at them, so they may hold tensors.
bool MovesLists(const BinaryRule& rule, const Value& a, const Value& b) {
  if (rule.fold == &FoldAdd) return a.as_list() != nullptr && b.as_list() != nullptr;
  return rule.fold == &FoldMul && ((a.as_list() && b.as_int()) || (a.as_int() && b.as_list()));
}

// `left += right`, `left *= right`: Python changes a list in place, anything else is made anew.
absl::StatusOr<Value> Augmented(absl::string_view name, const Value& left, const Value& right,
                                Emitter* emitter) {
  if (left.as_list() != nullptr && left.kind() == SequenceKind::kList) {
    return absl::InvalidArgumentError(
        absl::StrCat("this would change a list in place, which other names may hold: write `a = a ",
                     name == "add" ? "+" : "*", " ...`, which makes a new list"));
  }
  return Binary(name, left, right, emitter);
}

}  // namespace

bool IsUnaryOperator(absl::string_view name) { return FindUnary(name) != nullptr; }
bool IsBinaryOperator(absl::string_view name) {
  return FindBinary(name) != nullptr || name == "iadd" || name == "imul";
}

absl::string_view TfOpOf(absl::string_view binary) {
  const BinaryRule* rule = FindBinary(binary);
  return rule == nullptr || rule->op == nullptr ? absl::string_view() : rule->op;
}

absl::StatusOr<Value> Unary(absl::string_view name, const Value& a, Emitter* emitter) {
  const UnaryRule* rule = FindUnary(name);
  if (rule == nullptr) return absl::InvalidArgumentError(absl::StrCat("no operator '", name, "'"));
  if (a.as_tensor() == nullptr && a.as_constant() == nullptr) return rule->fold(a);
  if (rule->fold == &FoldNot && !a.is_weak()) {
    TF_ASSIGN_OR_RETURN(Condition condition, Decide(a, emitter));
    if (condition.known.has_value()) return Value::Bool(!*condition.known);
    TF_ASSIGN_OR_RETURN(Value result, emitter->Call("LogicalNot", {"x"},
                                                    {Value::Tensor(std::move(condition.tensor))}));
    TensorValue weak = *result.as_tensor();  // Python's `not` gives its own True or False
    weak.weak = true;
    return Value::Tensor(std::move(weak));
  }
  if (rule->fold == &FoldNeg && CanFoldArrays(a, Value::Int(-1))) {
    return FoldArrays(&FoldMul, a, Value::Int(-1));
  }
  const bool is_bool = NaturalType(a) == tensorflow::DT_BOOL;
  const char* op = is_bool ? rule->bools : rule->numbers;
  // ~ and - of a Python bool are ints, and `not` of a number is a bool: known when the number is.
  if (a.is_weak() && (op == nullptr || (is_bool && rule->fold != &FoldNot))) {
    TF_ASSIGN_OR_RETURN(Value known, emitter->Known(a));
    return rule->fold(known);
  }
  if (op == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", rule->symbol, "' has no meaning on ", Describe(a)));
  }
  if (*op == '\0') return a;
  TF_ASSIGN_OR_RETURN(Value result, emitter->Call(op, {"x"}, {AsStrong(a)}));
  if (!a.is_weak()) return result;
  TensorValue weak = *result.as_tensor();
  weak.weak = true;
  weak.fact = a.as_tensor()->fact;
  return Value::Tensor(std::move(weak));
}

absl::StatusOr<Value> Binary(absl::string_view name, const Value& left, const Value& right,
                             Emitter* emitter) {
  if (name == "iadd") return Augmented("add", left, right, emitter);
  if (name == "imul") return Augmented("mul", left, right, emitter);
  const BinaryRule* rule = FindBinary(name);
  if (rule == nullptr) return absl::InvalidArgumentError(absl::StrCat("no operator '", name, "'"));
  if (rule->form == Form::kIdentity && !left.is_strong() && !right.is_strong()) {
    if (left.is_none() || right.is_none()) return rule->fold(left, right);
  }
  TF_ASSIGN_OR_RETURN(Value a, ShapeAsList(left, emitter));
  TF_ASSIGN_OR_RETURN(Value b, ShapeAsList(right, emitter));
  if (MovesLists(*rule, a, b)) return rule->fold(a, b);
  const bool known_only = rule->fold == nullptr || rule->form == Form::kKnownOnly;
  if (!known_only && CanFoldArrays(a, b)) return FoldArrays(rule->fold, a, b);
  if (a.is_strong() || b.is_strong()) return BinaryStrong(*rule, a, b, emitter);
  if ((a.is_weak() || b.is_weak()) && rule->form != Form::kKnownOnly) {
    return BinaryWeak(*rule, a, b, emitter);
  }
  if (rule->fold == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("'", rule->symbol, "' needs tensors, got ",
                                                   TypeName(a), " and ", TypeName(b)));
  }
  TF_ASSIGN_OR_RETURN(Value x, emitter->Known(a));
  TF_ASSIGN_OR_RETURN(Value y, emitter->Known(b));
  return rule->fold(x, y);
}

}  // namespace composite
