#include "composite/runtime/value/value.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::OpDef;

// A few bytes of proto can describe any number of equal elements; a constant of source code is
// small.
constexpr int64_t kMaxConstantBytes = int64_t{1} << 28;

absl::StatusOr<Value> FromTensorProto(const tensorflow::TensorProto& proto) {
  tensorflow::Tensor tensor;
  tensorflow::TensorShape shape;
  TF_RETURN_IF_ERROR(tensorflow::TensorShape::BuildTensorShape(proto.tensor_shape(), &shape));
  const int64_t width = std::max(1, tensorflow::DataTypeSize(proto.dtype()));
  if (shape.num_elements() > kMaxConstantBytes / width || !tensor.FromProto(proto)) {
    return absl::InvalidArgumentError("Malformed program: a constant tensor does not parse");
  }
  return Value::Constant(std::move(tensor));
}

absl::StatusOr<Value> FromShapeProto(const tensorflow::TensorShapeProto& proto) {
  ShapeValue shape;
  TF_RETURN_IF_ERROR(tensorflow::PartialTensorShape::BuildPartialTensorShape(proto, &shape.known));
  return Value::Shape(std::move(shape));
}

absl::StatusOr<Value> FromList(const AttrValue::ListValue& list) {
  Value::List values;
  for (const std::string& s : list.s()) values.push_back(Value::String(s));
  for (int64_t i : list.i()) values.push_back(Value::Int(i));
  for (float f : list.f()) values.push_back(Value::Float(f));
  for (bool b : list.b()) values.push_back(Value::Bool(b));
  for (int t : list.type()) values.push_back(Value::Type(static_cast<DataType>(t)));
  for (const auto& shape : list.shape()) {
    TF_ASSIGN_OR_RETURN(Value value, FromShapeProto(shape));
    values.push_back(std::move(value));
  }
  for (const auto& tensor : list.tensor()) {
    TF_ASSIGN_OR_RETURN(Value value, FromTensorProto(tensor));
    values.push_back(std::move(value));
  }
  for (const auto& func : list.func()) values.push_back(Value::Func(func));
  return Value::MakeList(std::move(values));
}

// The element type of "list(int)"; "" when `type` is not a list.
absl::string_view ElementType(absl::string_view type) {
  if (!absl::StartsWith(type, "list(") || !absl::EndsWith(type, ")")) return "";
  return type.substr(5, type.size() - 6);
}

absl::Status WrongKind(const Value& value, const OpDef::AttrDef& attr) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", attr.name(), "' wants ", attr.type(), ", got ", Describe(value)));
}

bool ToShape(const Value& value, tensorflow::TensorShapeProto* proto) {
  if (const ShapeValue* shape = value.as_shape(); shape != nullptr) {
    if (shape->source.node != nullptr) return false;
    shape->known.AsProto(proto);
    return true;
  }
  if (value.is_none()) {
    proto->set_unknown_rank(true);
    return true;
  }
  if (value.as_list() == nullptr) return false;
  for (const Value& dim : *value.as_list()) {
    int64_t size = -1;
    if (!dim.is_none() && !GetInt(dim, &size)) return false;
    proto->add_dim()->set_size(size);
  }
  return tensorflow::PartialTensorShape::IsValidShape(*proto).ok();
}

bool ToTensor(const Value& value, tensorflow::TensorProto* proto) {
  if (const tensorflow::Tensor* tensor = value.as_constant(); tensor != nullptr) {
    tensor->AsProtoTensorContent(proto);
    return true;
  }
  return false;
}

// One element of kind `type` into `out`, a scalar field or the end of a list field.
bool SetScalar(const Value& value, absl::string_view type, AttrValue* out) {
  int64_t number = 0;
  if (type == "int" && GetInt(value, &number)) {
    out->set_i(number);
  } else if (type == "float" && value.as_float() != nullptr) {
    out->set_f(static_cast<float>(*value.as_float()));
  } else if (type == "float" && GetInt(value, &number)) {
    out->set_f(static_cast<float>(number));
  } else if (type == "bool" && value.as_bool() != nullptr) {
    out->set_b(*value.as_bool());
  } else if (type == "string" && value.as_string() != nullptr) {
    out->set_s(*value.as_string());
  } else if (type == "type" && value.as_type() != nullptr) {
    out->set_type(*value.as_type());
  } else if (type == "shape") {
    return ToShape(value, out->mutable_shape());
  } else if (type == "tensor") {
    return ToTensor(value, out->mutable_tensor());
  } else if (type == "func" && value.as_func() != nullptr) {
    *out->mutable_func() = *value.as_func();
  } else {
    return false;
  }
  return true;
}

void Append(AttrValue&& element, AttrValue::ListValue* list) {
  switch (element.value_case()) {
    case AttrValue::kI:
      list->add_i(element.i());
      break;
    case AttrValue::kF:
      list->add_f(element.f());
      break;
    case AttrValue::kB:
      list->add_b(element.b());
      break;
    case AttrValue::kS:
      list->add_s(element.s());
      break;
    case AttrValue::kType:
      list->add_type(element.type());
      break;
    case AttrValue::kShape:
      *list->add_shape() = std::move(*element.mutable_shape());
      break;
    case AttrValue::kTensor:
      *list->add_tensor() = std::move(*element.mutable_tensor());
      break;
    case AttrValue::kFunc:
      *list->add_func() = std::move(*element.mutable_func());
      break;
    default:
      break;
  }
}

// A list attribute takes a list, and list(int) a known shape as well.
absl::Status SetList(const Value& value, absl::string_view element, const OpDef::AttrDef& attr,
                     AttrValue* out) {
  out->mutable_list();
  if (const ShapeValue* shape = value.as_shape();
      shape != nullptr && element == "int" && shape->known.IsFullyDefined()) {
    for (int64_t dim : shape->known.dim_sizes()) out->mutable_list()->add_i(dim);
    return absl::OkStatus();
  }
  if (value.as_list() == nullptr) return WrongKind(value, attr);
  for (const Value& item : *value.as_list()) {
    AttrValue scalar;
    if (!SetScalar(item, element, &scalar)) return WrongKind(value, attr);
    Append(std::move(scalar), out->mutable_list());
  }
  return absl::OkStatus();
}

const char* SequenceName(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::kTuple:
      return "tuple";
    case SequenceKind::kRange:
      return "range";
    case SequenceKind::kShape:
      return "TensorShape";
    default:
      return "list";
  }
}

std::string FloatText(double v) {
  std::string text = absl::StrCat(v);
  const bool plain = text.find_first_of(".en") == std::string::npos;
  return plain ? absl::StrCat(text, ".0") : text;
}

}  // namespace

Value Value::Range(RangeValue v) {
  return Value(Variant(std::make_shared<const RangeValue>(std::move(v))));
}

bool GetInt(const Value& value, int64_t* out) {
  if (const int64_t* i = value.as_int(); i != nullptr) {
    *out = *i;
    return true;
  }
  if (const bool* b = value.as_bool(); b != nullptr) {
    *out = *b ? 1 : 0;
    return true;
  }
  return false;
}

std::string TypeName(const Value& value) {
  if (value.is_none()) return "NoneType";
  if (value.is_undefined()) return "nothing";
  if (value.as_bool()) return "bool";
  if (value.as_int()) return "int";
  if (value.as_float()) return "float";
  if (value.as_string()) return "str";
  if (value.as_type()) return "DType";
  if (value.as_shape()) return "TensorShape";
  if (value.as_list()) return SequenceName(value.kind());
  if (value.as_range()) return "range";
  if (value.as_func()) return "function";
  if (value.is_weak()) {
    switch (value.as_tensor()->dtype) {
      case tensorflow::DT_BOOL:
        return "bool";
      case tensorflow::DT_DOUBLE:
        return "float";
      default:
        return "int";
    }
  }
  return "Tensor";
}

std::string WithArticle(DataType dtype) {
  const std::string name = tensorflow::DataTypeString(dtype);
  return absl::StrCat(absl::StartsWith(name, "int") ? "an " : "a ", name);
}

std::string Describe(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is_undefined()) return "nothing yet";
  if (value.as_bool()) return *value.as_bool() ? "True" : "False";
  if (value.as_int()) return absl::StrCat(*value.as_int());
  if (value.as_float()) return FloatText(*value.as_float());
  if (value.as_string()) return absl::StrCat("'", *value.as_string(), "'");
  if (value.as_type()) return tensorflow::DataTypeString(*value.as_type());
  if (value.as_range()) return "a range whose length is known when the op runs";
  if (value.as_func()) return absl::StrCat("the function ", value.as_func()->name());
  if (value.as_constant()) {
    return absl::StrCat(WithArticle(value.as_constant()->dtype()), " array");
  }
  if (const ShapeValue* shape = value.as_shape(); shape != nullptr) {
    return shape->source.node != nullptr ? "the shape of a tensor" : shape->known.DebugString();
  }
  if (const TensorValue* tensor = value.as_tensor(); tensor != nullptr) {
    if (tensor->weak && tensor->fact == nullptr) return "a number that is known when the op runs";
    if (tensor->weak) return absl::StrCat("a number that depends on ", *tensor->fact);
    return absl::StrCat(WithArticle(tensor->dtype), " tensor");
  }
  const Value::List& items = *value.as_list();
  const std::string text = absl::StrJoin(items, ", ", [](std::string* out, const Value& item) {
    absl::StrAppend(out, Describe(item));
  });
  if (value.kind() == SequenceKind::kList) return absl::StrCat("[", text, "]");
  return absl::StrCat("(", text, items.size() == 1 ? ",)" : ")");
}

absl::StatusOr<Value> FromAttr(const AttrValue& attr) {
  switch (attr.value_case()) {
    case AttrValue::VALUE_NOT_SET:
      return Value();
    case AttrValue::kI:
      return Value::Int(attr.i());
    case AttrValue::kF:
      return Value::Float(attr.f());
    case AttrValue::kB:
      return Value::Bool(attr.b());
    case AttrValue::kS:
      return Value::String(attr.s());
    case AttrValue::kType:
      return Value::Type(attr.type());
    case AttrValue::kShape:
      return FromShapeProto(attr.shape());
    case AttrValue::kTensor:
      return FromTensorProto(attr.tensor());
    case AttrValue::kFunc:
      return Value::Func(attr.func());
    case AttrValue::kList:
      return FromList(attr.list());
    case AttrValue::kPlaceholder:
      return Value::MakeUndefined();
    default:
      return absl::InvalidArgumentError("Malformed program: a constant of an unknown kind");
  }
}

absl::StatusOr<Value> FromConstant(const AttrValue& attr) {
  TF_ASSIGN_OR_RETURN(Value value, FromAttr(attr));
  const tensorflow::Tensor* tensor = value.as_constant();
  if (tensor != nullptr && tensor->dtype() == tensorflow::DT_DOUBLE && tensor->dims() == 0) {
    return Value::Float(tensor->scalar<double>()());
  }
  return value;
}

absl::StatusOr<AttrValue> ToAttr(const Value& value, const OpDef::AttrDef& attr) {
  AttrValue out;
  if (absl::string_view element = ElementType(attr.type()); !element.empty()) {
    TF_RETURN_IF_ERROR(SetList(value, element, attr, &out));
  } else if (!SetScalar(value, attr.type(), &out)) {
    return WrongKind(value, attr);
  }
  TF_RETURN_IF_ERROR(tensorflow::ValidateAttrValue(out, attr));
  return out;
}

}  // namespace composite
