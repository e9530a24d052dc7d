// Comparison, membership, identity and truth of known values; see fold.h.
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/value/fold.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

// x86's long double holds every int64 and every double exactly, so that ints and floats compare as
// in Python.
using Wide = long double;

bool GetWide(const Value& value, Wide* out) {
  int64_t i = 0;
  if (value.as_float() != nullptr) {
    *out = *value.as_float();
  } else if (GetInt(value, &i)) {
    *out = i;
  } else {
    return false;
  }
  return true;
}

// -1, 0, 1, or 2 when a NaN makes them unordered.
int Order(Wide x, Wide y) { return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2; }

absl::StatusOr<bool> Equal(const Value& a, const Value& b);
absl::StatusOr<bool> ItemsEqual(const Value& a, const Value& b);

bool CanBeOrdered(const Value& a, const Value& b) {
  return a.as_list() && b.as_list() && a.kind() == b.kind() &&
         (a.kind() == SequenceKind::kList || a.kind() == SequenceKind::kTuple);
}

absl::StatusOr<int> Ordered(const char* symbol, const Value& a, const Value& b) {
  Wide u = 0, v = 0;
  if (GetWide(a, &u) && GetWide(b, &v)) return Order(u, v);
  if (a.as_string() != nullptr && b.as_string() != nullptr) {
    const int order = a.as_string()->compare(*b.as_string());
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  // Sequences are ordered as their first items that differ.
  if (!CanBeOrdered(a, b)) return UnsupportedOperands(symbol, a, b);
  const Value::List &x = *a.as_list(), &y = *b.as_list();
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    TF_ASSIGN_OR_RETURN(bool equal, ItemsEqual(x[i], y[i]));
    if (!equal) return Ordered(symbol, x[i], y[i]);
  }
  return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
}

// As an item of a sequence is compared: Python asks `is` first, so that a NaN may equal itself.
absl::StatusOr<bool> ItemsEqual(const Value& a, const Value& b) {
  if (a.as_float() && b.as_float() && std::isnan(*a.as_float()) && std::isnan(*b.as_float())) {
    return absl::InvalidArgumentError(
        "two NaNs in lists are equal in Python if they are one object, which is not known here; "
        "compare the numbers one by one");
  }
  return Equal(a, b);
}

absl::StatusOr<bool> SequencesEqual(const Value& a, const Value& b) {
  const bool shape = a.kind() == SequenceKind::kShape || b.kind() == SequenceKind::kShape;
  if (a.kind() != b.kind() && !shape) return false;
  const Value::List &x = *a.as_list(), &y = *b.as_list();
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (shape && (x[i].as_float() || y[i].as_float())) return false;  // a float is no dim
    TF_ASSIGN_OR_RETURN(bool equal, ItemsEqual(x[i], y[i]));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> Equal(const Value& a, const Value& b) {
  Wide x = 0, y = 0;
  if (GetWide(a, &x) && GetWide(b, &y)) return x == y;
  if (a.as_string() && b.as_string()) return *a.as_string() == *b.as_string();
  if (a.as_type() && b.as_type()) return *a.as_type() == *b.as_type();
  if (a.as_list() && b.as_list()) return SequencesEqual(a, b);
  if (a.as_tensor() || b.as_tensor() || a.as_constant() || b.as_constant()) {
    return absl::InvalidArgumentError(
        "a list that holds tensors cannot be compared; compare the tensors one by one");
  }
  return a.is_none() && b.is_none();
}

}  // namespace

absl::StatusOr<Value> FoldEqual(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(bool equal, Equal(a, b));
  return Value::Bool(equal);
}

absl::StatusOr<Value> FoldNotEqual(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(bool equal, Equal(a, b));
  return Value::Bool(!equal);
}

absl::StatusOr<Value> FoldLess(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(int order, Ordered("<", a, b));
  return Value::Bool(order == -1);
}

absl::StatusOr<Value> FoldLessEqual(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(int order, Ordered("<=", a, b));
  return Value::Bool(order <= 0);
}

absl::StatusOr<Value> FoldGreater(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(int order, Ordered(">", a, b));
  return Value::Bool(order == 1);
}

absl::StatusOr<Value> FoldGreaterEqual(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(int order, Ordered(">=", a, b));
  return Value::Bool(order == 0 || order == 1);
}

absl::StatusOr<Value> FoldIn(const Value& a, const Value& b) {
  if (a.as_string() && b.as_string()) {
    return Value::Bool(b.as_string()->find(*a.as_string()) != std::string::npos);
  }
  if (b.as_list() == nullptr) return UnsupportedOperands("in", a, b);
  for (const Value& item : *b.as_list()) {
    TF_ASSIGN_OR_RETURN(bool equal, ItemsEqual(a, item));
    if (equal) return Value::Bool(true);
  }
  return Value::Bool(false);
}

absl::StatusOr<Value> FoldNotIn(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(Value in, FoldIn(a, b));
  return Value::Bool(!*in.as_bool());
}

absl::StatusOr<Value> FoldIs(const Value& a, const Value& b) {
  if (a.is_none() || b.is_none()) return Value::Bool(a.is_none() && b.is_none());
  if (a.as_bool() && b.as_bool()) return Value::Bool(*a.as_bool() == *b.as_bool());
  if (a.as_type() && b.as_type()) return Value::Bool(*a.as_type() == *b.as_type());
  if (TypeName(a) != TypeName(b)) return Value::Bool(false);
  return absl::InvalidArgumentError(
      absl::StrCat("'is' between two values of type ", TypeName(a), "; write =="));
}

absl::StatusOr<Value> FoldIsNot(const Value& a, const Value& b) {
  TF_ASSIGN_OR_RETURN(Value is, FoldIs(a, b));
  return Value::Bool(!*is.as_bool());
}

absl::StatusOr<bool> Truth(const Value& value) {
  Wide number = 0;
  if (value.is_none()) return false;
  if (GetWide(value, &number)) return number != 0;
  if (value.as_string()) return !value.as_string()->empty();
  // A tf.TensorShape is true where its rank is known, which that of a sequence of dims is.
  if (value.as_list()) return value.kind() == SequenceKind::kShape || !value.as_list()->empty();
  if (value.as_type() || value.as_func()) return true;
  // As of a tf.TensorShape; the rank of a tensor is known in the end.
  if (const ShapeValue* shape = value.as_shape(); shape != nullptr) {
    return shape->source.node != nullptr || !shape->known.unknown_rank();
  }
  return absl::InvalidArgumentError(absl::StrCat(Describe(value), " has no truth value here"));
}

}  // namespace composite
