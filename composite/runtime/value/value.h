// A value of a program while it is evaluated: something Python knows now, a tensor of the graph
// that is being made, a shape, or a list of values.
#ifndef COMPOSITE_RUNTIME_VALUE_VALUE_H_
#define COMPOSITE_RUNTIME_VALUE_VALUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {
class Node;
}

namespace composite {

// An output of a node of the scratch graph. A weak one stands for a Python number that is known
// only at run time (an unknown dim, and what is computed from it): an int64, double or bool scalar
// that adopts the dtype of the tensor beside it, as a literal does.
struct TensorValue {
  tensorflow::Node* node = nullptr;
  int index = 0;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  bool weak = false;
  // For a weak one, what is not known yet: "dim 0 of input 'x'". Null when it is computed by the
  // op, on a path or in a trip that a tensor decides: then only the run knows it.
  std::shared_ptr<const std::string> fact;
};

// The shape of a tensor, which is read only as far as the program looks at it; or a shape that is
// known without a tensor (an attribute), then source.node is null.
struct ShapeValue {
  TensorValue source;
  tensorflow::PartialTensorShape known;
};

struct RangeValue;

// What Python calls the type of a sequence: it decides what is equal to it, and what it adds to. A
// kShape has the dims of a tf.TensorShape, which equals both a list and a tuple of them.
enum class SequenceKind { kList, kTuple, kRange, kShape };

class Value {
 public:
  struct None {};
  // What a name holds on a path that does not assign it. Nothing reads it there.
  struct Undefined {};
  using List = std::vector<Value>;

  Value() = default;  // None
  static Value MakeUndefined() { return Value(Variant(Undefined{})); }
  static Value Bool(bool v) { return Value(Variant(std::in_place_type<bool>, v)); }
  static Value Int(int64_t v) { return Value(Variant(std::in_place_type<int64_t>, v)); }
  static Value Float(double v) { return Value(Variant(std::in_place_type<double>, v)); }
  static Value String(std::string v) {
    return Value(Variant(std::in_place_type<std::string>, std::move(v)));
  }
  static Value Type(tensorflow::DataType v) {
    return Value(Variant(std::in_place_type<tensorflow::DataType>, v));
  }
  static Value Tensor(TensorValue v) {
    return Value(Variant(std::in_place_type<TensorValue>, std::move(v)));
  }
  static Value Shape(ShapeValue v) {
    return Value(Variant(std::in_place_type<ShapeValue>, std::move(v)));
  }
  static Value MakeList(List v, SequenceKind kind = SequenceKind::kList) {
    return Value(Variant(std::make_shared<const Sequence>(Sequence{std::move(v), kind})));
  }
  static Value Constant(tensorflow::Tensor v) {
    return Value(Variant(std::make_shared<const tensorflow::Tensor>(std::move(v))));
  }
  static Value Range(RangeValue v);
  static Value Func(tensorflow::NameAttrList v) {
    return Value(Variant(std::make_shared<const tensorflow::NameAttrList>(std::move(v))));
  }

  bool is_none() const { return std::holds_alternative<None>(v_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(v_); }
  // Null when the value is of another kind.
  const bool* as_bool() const { return std::get_if<bool>(&v_); }
  const int64_t* as_int() const { return std::get_if<int64_t>(&v_); }
  const double* as_float() const { return std::get_if<double>(&v_); }
  const std::string* as_string() const { return std::get_if<std::string>(&v_); }
  const tensorflow::DataType* as_type() const { return std::get_if<tensorflow::DataType>(&v_); }
  const TensorValue* as_tensor() const { return std::get_if<TensorValue>(&v_); }
  const ShapeValue* as_shape() const { return std::get_if<ShapeValue>(&v_); }
  // The items of a sequence of any kind.
  const List* as_list() const {
    const Sequence* sequence = Get<Sequence>();
    return sequence == nullptr ? nullptr : &sequence->items;
  }
  // Of a sequence only.
  SequenceKind kind() const { return Get<Sequence>()->kind; }
  const tensorflow::Tensor* as_constant() const { return Get<tensorflow::Tensor>(); }
  const RangeValue* as_range() const { return Get<RangeValue>(); }
  const tensorflow::NameAttrList* as_func() const { return Get<tensorflow::NameAttrList>(); }

  // A known bool, int or float.
  bool is_number() const { return as_bool() || as_int() || as_float(); }
  bool is_weak() const { return as_tensor() != nullptr && as_tensor()->weak; }
  // What operators treat as a tensor: one of the graph, or a constant array of the program.
  bool is_strong() const { return as_constant() || (as_tensor() && !as_tensor()->weak); }

 private:
  struct Sequence {
    List items;
    SequenceKind kind;
  };

  using Variant =
      std::variant<None, Undefined, bool, int64_t, double, std::string, tensorflow::DataType,
                   TensorValue, ShapeValue, std::shared_ptr<const Sequence>,
                   std::shared_ptr<const tensorflow::Tensor>, std::shared_ptr<const RangeValue>,
                   std::shared_ptr<const tensorflow::NameAttrList>>;
  explicit Value(Variant v) : v_(std::move(v)) {}

  template <typename T>
  const T* Get() const {
    const auto* p = std::get_if<std::shared_ptr<const T>>(&v_);
    return p == nullptr ? nullptr : p->get();
  }

  Variant v_;
};

// range() of numbers that are known only when the op runs.
struct RangeValue {
  Value start, step, count;
};

// What Python would call the type: "int", "str", "Tensor", ...
std::string TypeName(const Value& value);
// As in an error message: 3, 'RELU', float32, [1, 2], "a float tensor".
std::string Describe(const Value& value);
// "a float", "an int32".
std::string WithArticle(tensorflow::DataType dtype);

// Python counts True as 1. False when the value is no int.
bool GetInt(const Value& value, int64_t* out);

// The Python value of an op's attribute.
absl::StatusOr<Value> FromAttr(const tensorflow::AttrValue& attr);
// The value of a tfr.constant: as above, but a double scalar is a Python float, since attributes
// have float32 only.
absl::StatusOr<Value> FromConstant(const tensorflow::AttrValue& attr);

// The other way. `value` must not hold tensors of the graph (see Evaluator::Known). The error says
// what the attribute wants; the attribute's own limits (allowed values, minimum) are checked too.
absl::StatusOr<tensorflow::AttrValue> ToAttr(const Value& value,
                                             const tensorflow::OpDef::AttrDef& attr);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_VALUE_VALUE_H_
