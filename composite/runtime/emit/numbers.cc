#include "composite/runtime/emit/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/emit/condition.h"
#include "composite/runtime/emit/operators.h"
#include "composite/runtime/value/constant.h"
#include "composite/runtime/value/fold.h"
#include "composite/runtime/value/fold_number.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;

absl::Status OfTensor(absl::string_view function, const Value& value, absl::string_view instead) {
  return absl::InvalidArgumentError(
      absl::StrCat(function, "() of ", Describe(value), ": ", instead));
}

// A number of Python's whose tensor form is computed: of the dtype of the tensor.
Value Weak(Value computed, const Value& like) {
  TensorValue weak = *computed.as_tensor();
  weak.weak = true;
  weak.fact = like.as_tensor()->fact;
  return Value::Tensor(std::move(weak));
}

absl::StatusOr<Value> Strong(const Value& number, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter->ToTensor(number, WeakType(number)));
  tensor.weak = false;
  return Value::Tensor(std::move(tensor));
}

absl::StatusOr<Value> CastWeak(const Value& number, DataType dtype, Emitter* emitter) {
  if (number.as_tensor()->dtype == dtype) return number;
  TF_ASSIGN_OR_RETURN(Value strong, Strong(number, emitter));
  TF_ASSIGN_OR_RETURN(Value cast,
                      emitter->Call("Cast", {"x", "DstT"}, {strong, Value::Type(dtype)}));
  return Weak(std::move(cast), number);
}

absl::StatusOr<Value> Float(const std::vector<Value>& arguments, Emitter* emitter) {
  if (arguments[0].is_strong()) {
    return OfTensor("float", arguments[0], "write tf.cast(x, tf.float32), which keeps it a tensor");
  }
  if (arguments[0].is_weak()) return CastWeak(arguments[0], tensorflow::DT_DOUBLE, emitter);
  return FoldFloat(arguments[0]);
}

absl::StatusOr<Value> Int(const std::vector<Value>& arguments, Emitter* emitter) {
  const Value& number = arguments[0];
  if (number.is_strong()) {
    return OfTensor("int", number, "write tf.cast(x, tf.int32), which keeps it a tensor");
  }
  // Python refuses NaN and infinity, so a float has to be known.
  if (number.is_weak() && number.as_tensor()->dtype != tensorflow::DT_DOUBLE) {
    return CastWeak(number, tensorflow::DT_INT64, emitter);
  }
  TF_ASSIGN_OR_RETURN(Value known, emitter->Known(number));
  return FoldInt(known);
}

absl::StatusOr<Value> Round(const std::vector<Value>& arguments, Emitter* emitter) {
  if (arguments[0].is_strong()) return OfTensor("round", arguments[0], "write tf.round(x)");
  const bool whole = arguments.size() == 1 && arguments[0].is_weak() &&
                     arguments[0].as_tensor()->dtype == tensorflow::DT_INT64;
  if (whole) return arguments[0];
  TF_ASSIGN_OR_RETURN(Value number, emitter->Known(arguments[0]));
  TF_ASSIGN_OR_RETURN(Value digits, emitter->Known(arguments.size() > 1 ? arguments[1] : Value()));
  return FoldRound(number, digits);
}

absl::StatusOr<Value> Abs(const std::vector<Value>& arguments, Emitter* emitter) {
  const Value& number = arguments[0];
  if (number.as_constant() != nullptr) {
    return OfTensor("abs", number, "compute it at the top of the module");
  }
  if (number.is_strong()) {
    const tensorflow::DataType dtype = number.as_tensor()->dtype;
    if (!tensorflow::DataTypeIsComplex(dtype)) return emitter->Call("Abs", {"x"}, {number});
    const bool wide = dtype == tensorflow::DT_COMPLEX128;
    const Value real = Value::Type(wide ? tensorflow::DT_DOUBLE : tensorflow::DT_FLOAT);
    return emitter->Call("ComplexAbs", {"x", "Tout"}, {number, real});
  }
  if (number.is_weak() && number.as_tensor()->dtype != tensorflow::DT_BOOL) {
    TF_ASSIGN_OR_RETURN(Value strong, Strong(number, emitter));
    TF_ASSIGN_OR_RETURN(Value made, emitter->Call("Abs", {"x"}, {strong}));
    return Weak(std::move(made), number);
  }
  TF_ASSIGN_OR_RETURN(Value known, emitter->Known(number));
  return FoldAbs(known);
}

absl::StatusOr<Value> DivMod(const std::vector<Value>& arguments, Emitter* emitter) {
  for (const Value& number : arguments) {
    if (number.is_strong()) return OfTensor("divmod", number, "write `a // b` and `a % b`");
  }
  TF_ASSIGN_OR_RETURN(Value quotient, Binary("floordiv", arguments[0], arguments[1], emitter));
  TF_ASSIGN_OR_RETURN(Value rest, Binary("mod", arguments[0], arguments[1], emitter));
  return Value::MakeList({std::move(quotient), std::move(rest)}, SequenceKind::kTuple);
}

absl::StatusOr<Value> Pow(const std::vector<Value>& arguments, Emitter* emitter) {
  if (arguments.size() == 2) return Binary("pow", arguments[0], arguments[1], emitter);
  Value known[3];
  for (int i = 0; i < 3; ++i) {
    TF_ASSIGN_OR_RETURN(known[i], emitter->Known(arguments[i]));
  }
  return FoldPowMod(known[0], known[1], known[2]);
}

// `item` if `comparison` holds between it and `best`, as Python's loop over the items has it: NaN
// stays where it comes first, and of equal ones the first is taken.
absl::StatusOr<Value> Better(const char* comparison, const Value& item, const Value& best,
                             Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value better, Binary(comparison, item, best, emitter));
  if (better.as_bool() != nullptr) return *better.as_bool() ? item : best;
  if (WeakType(item) != WeakType(best)) {  // an int or a float: which of them has to be known
    TF_ASSIGN_OR_RETURN(Value x, emitter->Known(item));
    TF_ASSIGN_OR_RETURN(Value y, emitter->Known(best));
    return Better(comparison, x, y, emitter);
  }
  TF_ASSIGN_OR_RETURN(Value condition, Strong(better, emitter));
  TF_ASSIGN_OR_RETURN(Value x, Strong(item, emitter));
  TF_ASSIGN_OR_RETURN(Value y, Strong(best, emitter));
  TF_ASSIGN_OR_RETURN(Value chosen,
                      emitter->Call("SelectV2", {"condition", "t", "e"}, {condition, x, y}));
  return Weak(std::move(chosen), better);
}

absl::StatusOr<Value> Best(absl::string_view function, const char* comparison,
                           absl::string_view instead, const std::vector<Value>& arguments,
                           Emitter* emitter) {
  const Value::List& items = *arguments[0].as_list();
  if (items.empty()) {
    if (arguments.size() > 1) return arguments[1];
    return absl::InvalidArgumentError(absl::StrCat(function, "() arg is an empty sequence"));
  }
  for (const Value& item : items) {
    if (item.is_strong()) return OfTensor(function, item, instead);
  }
  Value best = items[0];
  for (size_t i = 1; i < items.size(); ++i) {
    TF_ASSIGN_OR_RETURN(best, Better(comparison, items[i], best, emitter));
  }
  return best;
}

absl::StatusOr<Value> Max(const std::vector<Value>& arguments, Emitter* emitter) {
  return Best("max", "gt", "write tf.maximum(a, b), or tf.reduce_max", arguments, emitter);
}

absl::StatusOr<Value> Min(const std::vector<Value>& arguments, Emitter* emitter) {
  return Best("min", "lt", "write tf.minimum(a, b), or tf.reduce_min", arguments, emitter);
}

absl::StatusOr<Value> Sum(const std::vector<Value>& arguments, Emitter* emitter) {
  Value total = arguments.size() > 1 ? arguments[1] : Value::Int(0);
  if (total.as_string() != nullptr) {
    return absl::InvalidArgumentError("sum() can't sum strings: add them with +");
  }
  for (const Value& item : *arguments[0].as_list()) {
    TF_ASSIGN_OR_RETURN(total, Binary("add", total, item, emitter));
  }
  return total;
}

// sum() from Python 3.12 on: the rounding errors of floats are added up, and added in the end.
absl::StatusOr<Value> SumCompensated(const std::vector<Value>& arguments, Emitter* emitter) {
  const Value::List& items = *arguments[0].as_list();
  Value total = arguments.size() > 1 ? arguments[1] : Value::Int(0);
  double error = 0;
  for (const Value& item : items) {
    if (total.as_float() == nullptr || !item.is_number()) {
      if (error != 0) total = Value::Float(*total.as_float() + error);
      error = 0;
      TF_ASSIGN_OR_RETURN(total, Sum({Value::MakeList({item}), total}, emitter));
      continue;
    }
    const double sum = *total.as_float();
    int64_t whole = 0;
    const double x = GetInt(item, &whole) ? static_cast<double>(whole) : *item.as_float();
    const double next = sum + x;
    if (item.as_float() != nullptr) {
      error += std::fabs(sum) >= std::fabs(x) ? (sum - next) + x : (x - next) + sum;
    }
    total = Value::Float(next);
  }
  if (error != 0 && std::isfinite(error)) total = Value::Float(*total.as_float() + error);
  return total;
}

// any() and all(): `wanted` is the truth that decides.
absl::StatusOr<Value> FirstTruth(bool wanted, const std::vector<Value>& arguments,
                                 Emitter* emitter) {
  Value result = Value::Bool(!wanted);
  for (const Value& item : *arguments[0].as_list()) {
    TF_ASSIGN_OR_RETURN(Condition truth, Decide(item, emitter));
    if (truth.known.has_value()) {
      if (*truth.known == wanted) return Value::Bool(wanted);
      continue;
    }
    if (result.as_tensor() == nullptr) {
      result = Value::Tensor(std::move(truth.tensor));
    } else {
      TF_ASSIGN_OR_RETURN(result, emitter->Call(wanted ? "LogicalOr" : "LogicalAnd", {"x", "y"},
                                                {result, Value::Tensor(std::move(truth.tensor))}));
    }
  }
  if (result.as_tensor() == nullptr) return result;
  TensorValue weak = *result.as_tensor();  // Python's own True or False
  weak.weak = true;
  return Value::Tensor(std::move(weak));
}

absl::StatusOr<Value> Any(const std::vector<Value>& arguments, Emitter* emitter) {
  return FirstTruth(true, arguments, emitter);
}

absl::StatusOr<Value> All(const std::vector<Value>& arguments, Emitter* emitter) {
  return FirstTruth(false, arguments, emitter);
}

bool HoldsNaN(const Value& value) {
  if (value.as_list() != nullptr) return absl::c_any_of(*value.as_list(), HoldsNaN);
  return value.as_float() != nullptr && std::isnan(*value.as_float());
}

// sorted(items, reverse)
absl::StatusOr<Value> Sorted(const std::vector<Value>& arguments, Emitter* emitter) {
  Value::List items;
  for (const Value& item : *arguments[0].as_list()) {
    if (item.is_strong()) return OfTensor("sorted", item, "write tf.sort(tf.stack(...))");
    TF_ASSIGN_OR_RETURN(Value known, emitter->Known(item));
    items.push_back(std::move(known));
  }
  if (items.size() > 1 && absl::c_any_of(items, HoldsNaN)) {
    return absl::InvalidArgumentError("sorted() of NaN has no order");
  }
  TF_ASSIGN_OR_RETURN(Value given, emitter->Known(arguments[1]));
  TF_ASSIGN_OR_RETURN(bool reverse, Truth(given));
  absl::Status status;
  absl::c_stable_sort(items, [&](const Value& a, const Value& b) {
    auto less = reverse ? FoldLess(b, a) : FoldLess(a, b);
    status.Update(less.status());
    return less.ok() && *less->as_bool();
  });
  TF_RETURN_IF_ERROR(status);
  return Value::MakeList(std::move(items));
}

// isinstance(value, type names...)
absl::StatusOr<Value> IsInstance(const std::vector<Value>& arguments, Emitter*) {
  const Value& value = arguments[0];
  if (value.as_constant() != nullptr) {
    return OfTensor("isinstance", value,
                    "convert it with tf.convert_to_tensor where it is defined");
  }
  const std::string own = TypeName(value);
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].as_string() == nullptr) {
      return absl::InvalidArgumentError("isinstance() takes the names of types");
    }
    const std::string& asked = *arguments[i].as_string();
    if (own == asked || (own == "bool" && asked == "int")) return Value::Bool(true);
  }
  return Value::Bool(false);
}

}  // namespace

const BuiltinRule* FindNumberRule(absl::string_view name) {
  static const auto* rules = new absl::flat_hash_map<absl::string_view, BuiltinRule>({
      {"float", {&Float, 1, 1}},
      {"int", {&Int, 1, 1}},
      {"round", {&Round, 1, 2}},
      {"abs", {&Abs, 1, 1}},
      {"divmod", {&DivMod, 2, 2}},
      {"pow", {&Pow, 2, 3}},
      {"min", {&Min, 1, 2, true}},
      {"max", {&Max, 1, 2, true}},
      {"sum", {&Sum, 1, 2, true}},
      {"sum_compensated", {&SumCompensated, 1, 2, true}},
      {"any", {&Any, 1, 1, true}},
      {"all", {&All, 1, 1, true}},
      {"sorted", {&Sorted, 2, 2, true}},
      {"isinstance", {&IsInstance, 2, 16}},
  });
  auto it = rules->find(name);
  return it == rules->end() ? nullptr : &it->second;
}

}  // namespace composite
