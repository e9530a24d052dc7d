#include "composite/runtime/emit/emitter.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/value/constant.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::OpDef;

// Whether part of a list is a tensor of the graph, so that the whole cannot be one constant.
bool HoldsTensors(const Value::List& list) {
  for (const Value& item : list) {
    if (item.as_tensor() != nullptr || item.as_constant() != nullptr) return true;
    if (item.as_shape() != nullptr) return true;
    if (item.as_list() != nullptr && HoldsTensors(*item.as_list())) return true;
  }
  return false;
}

// A small integer tensor as Python sees it: an int, or a list of ints.
template <typename T>
Value IntsOf(const tensorflow::Tensor& tensor) {
  auto flat = tensor.flat<T>();
  if (tensor.dims() == 0) return Value::Int(flat(0));
  Value::List list;
  for (int64_t i = 0; i < flat.size(); ++i) list.push_back(Value::Int(flat(i)));
  return Value::MakeList(std::move(list));
}

Value ValueOf(const tensorflow::Tensor& tensor) {
  if (tensor.dims() > 1) return Value::Constant(tensor);
  if (tensor.dtype() == tensorflow::DT_INT32) return IntsOf<int32_t>(tensor);
  if (tensor.dtype() == tensorflow::DT_INT64) return IntsOf<int64_t>(tensor);
  if (tensor.dtype() == tensorflow::DT_BOOL && tensor.dims() == 0) {
    return Value::Bool(tensor.scalar<bool>()());
  }
  return Value::Constant(tensor);
}

// The outputs of a node by output arg, as Python gets them.
absl::StatusOr<Value> ResultOf(const OpDef& op_def, std::vector<TensorValue> outputs) {
  tensorflow::NameRangeMap ranges;  // without outputs all are empty, as {0, 0} is
  if (!outputs.empty()) {
    TF_RETURN_IF_ERROR(
        tensorflow::NameRangesForNode(outputs[0].node->attrs(), op_def, nullptr, &ranges));
  }
  Value::List results;
  for (const OpDef::ArgDef& arg : op_def.output_arg()) {
    const auto [first, last] = ranges[arg.name()];
    if (arg.number_attr().empty() && arg.type_list_attr().empty()) {
      results.push_back(Value::Tensor(std::move(outputs[first])));
      continue;
    }
    Value::List list;
    for (int i = first; i < last; ++i) list.push_back(Value::Tensor(std::move(outputs[i])));
    results.push_back(Value::MakeList(std::move(list)));
  }
  if (results.empty()) return Value();
  if (results.size() == 1) return std::move(results[0]);
  return Value::MakeList(std::move(results), SequenceKind::kTuple);
}

}  // namespace

absl::StatusOr<Value> Emitter::Call(const std::string& op, absl::Span<const std::string> keywords,
                                    absl::Span<const Value> values, absl::string_view name) {
  const OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::OpRegistry::Global()->LookUpOpDef(op, &op_def));
  TF_ASSIGN_OR_RETURN(Binding binding, Bind(*op_def, keywords, values));
  // An Identity to a dtype converts: the argument was made a tensor of it, and the node adds
  // nothing.
  if (op == "Identity" && absl::c_linear_search(keywords, "T")) {
    return Value::Tensor(std::move(binding.inputs[0][0]));
  }
  binding.def.set_name(std::string(name));
  return AddBound(*op_def, std::move(binding));
}

absl::StatusOr<Value> Emitter::AddBound(const OpDef& op_def, Binding binding) {
  std::vector<TensorValue> inputs;
  for (const auto& list : binding.inputs) inputs.insert(inputs.end(), list.begin(), list.end());
  TF_ASSIGN_OR_RETURN(std::vector<TensorValue> outputs,
                      graph_.AddNode(std::move(binding.def), op_def, inputs));
  return ResultOf(op_def, std::move(outputs));
}

absl::StatusOr<TensorValue> Emitter::Call1(const std::string& op,
                                           absl::Span<const std::string> keywords,
                                           absl::Span<const Value> values) {
  TF_ASSIGN_OR_RETURN(Value result, Call(op, keywords, values));
  return *result.as_tensor();
}

absl::StatusOr<TensorValue> Emitter::ToTensor(const Value& value, DataType dtype) {
  if (const TensorValue* tensor = value.as_tensor(); tensor != nullptr) {
    if (tensor->dtype == dtype) return TensorValue{tensor->node, tensor->index, dtype, false, {}};
    if (!tensor->weak || !Adopts(value, dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(value), " stands where ",
                                                     tensorflow::DataTypeString(dtype),
                                                     " is wanted; write tf.cast if that is meant"));
    }
    TensorValue strong = *tensor;
    strong.weak = false;
    return Call1("Cast", {"x", "DstT"}, {Value::Tensor(strong), Value::Type(dtype)});
  }
  if (const ShapeValue* shape = value.as_shape(); shape != nullptr) {
    return ShapeToTensor(*shape, dtype);
  }
  if (const Value::List* list = value.as_list(); list != nullptr && HoldsTensors(*list)) {
    Value::List items;
    for (const Value& item : *list) {
      TF_ASSIGN_OR_RETURN(TensorValue tensor, ToTensor(item, dtype));
      items.push_back(Value::Tensor(std::move(tensor)));
    }
    return Call1("Pack", {"values"}, {Value::MakeList(std::move(items))});
  }
  TF_ASSIGN_OR_RETURN(tensorflow::Tensor constant, MakeConstant(value, dtype));
  return graph_.AddConstant(constant);
}

// A constant when all dims are known, else one Shape node, which is cheaper than its pieces.
absl::StatusOr<TensorValue> Emitter::ShapeToTensor(const ShapeValue& shape, DataType dtype) {
  const bool lazy = shape.source.node != nullptr;
  Value::List dims;
  bool known = !lazy || graph_.Rank(shape.source) >= 0;
  const int rank = lazy ? static_cast<int>(graph_.Rank(shape.source)) : shape.known.dims();
  for (int i = 0; known && i < rank; ++i) {
    const int64_t size = lazy ? graph_.Dim(shape.source, i) : shape.known.dim_size(i);
    known = size >= 0;
    dims.push_back(Value::Int(size));
  }
  if (known && rank >= 0) return ToTensor(Value::MakeList(std::move(dims)), dtype);
  if (!lazy) return absl::InvalidArgumentError("a shape with unknown dims cannot become a tensor");
  const bool wide = dtype == tensorflow::DT_INT64;
  TF_ASSIGN_OR_RETURN(TensorValue tensor,
                      Call1("Shape", {"input", "out_type"},
                            {Value::Tensor(shape.source),
                             Value::Type(wide ? tensorflow::DT_INT64 : tensorflow::DT_INT32)}));
  if (tensor.dtype == dtype) return tensor;
  return Call1("Cast", {"x", "DstT"}, {Value::Tensor(tensor), Value::Type(dtype)});
}

std::string Emitter::NameOf(const TensorValue& tensor) const {
  const int input = graph_.InputIndex(tensor);
  if (input >= 0) return absl::StrCat("input '", facts_.name(input), "'");
  const std::string op = graph_.Origin(tensor).node->type_string();
  return op == "_Arg" ? "what a loop carries" : absl::StrCat("the result of ", op);
}

absl::StatusOr<int64_t> Emitter::Rank(const ShapeValue& shape) {
  const bool lazy = shape.source.node != nullptr;
  const int64_t rank = lazy ? graph_.Rank(shape.source) : shape.known.dims();
  if (rank >= 0) return rank;
  return NotYet(lazy ? absl::StrCat("the rank of ", NameOf(shape.source)) : "the rank of a shape");
}

absl::StatusOr<Value> Emitter::Dim(const ShapeValue& shape, int index) {
  if (shape.source.node == nullptr) {
    const int64_t size = shape.known.dim_size(index);
    return size < 0 ? Value() : Value::Int(size);  // None, as in an attribute's TensorShape
  }
  const int64_t size = graph_.Dim(shape.source, index);
  if (size >= 0) return Value::Int(size);
  auto int_list = [](int64_t i) { return Value::MakeList({Value::Int(i)}); };
  TF_ASSIGN_OR_RETURN(TensorValue dims,
                      Call1("Shape", {"input", "out_type"},
                            {Value::Tensor(shape.source), Value::Type(tensorflow::DT_INT64)}));
  TF_ASSIGN_OR_RETURN(
      TensorValue dim,
      Call1(
          "StridedSlice", {"input", "begin", "end", "strides", "shrink_axis_mask"},
          {Value::Tensor(dims), int_list(index), int_list(index + 1), int_list(1), Value::Int(1)}));
  dim.weak = true;
  dim.fact = std::make_shared<const std::string>(
      absl::StrCat("dim ", index, " of ", NameOf(shape.source)));
  return Value::Tensor(std::move(dim));
}

absl::StatusOr<Value> Emitter::RankOf(TensorValue tensor) {
  const int64_t known = graph_.Rank(tensor);
  if (known >= 0) return Value::Int(known);
  auto fact = std::make_shared<const std::string>(absl::StrCat("the rank of ", NameOf(tensor)));
  TF_ASSIGN_OR_RETURN(TensorValue narrow,
                      Call1("Rank", {"input"}, {Value::Tensor(std::move(tensor))}));
  TF_ASSIGN_OR_RETURN(TensorValue rank,
                      Call1("Cast", {"x", "DstT"},
                            {Value::Tensor(std::move(narrow)), Value::Type(tensorflow::DT_INT64)}));
  rank.weak = true;
  rank.fact = std::move(fact);
  return Value::Tensor(std::move(rank));
}

absl::StatusOr<Value::List> Emitter::Dims(const ShapeValue& shape) {
  TF_ASSIGN_OR_RETURN(int64_t rank, Rank(shape));
  Value::List dims;
  for (int i = 0; i < rank; ++i) {
    TF_ASSIGN_OR_RETURN(Value dim, Dim(shape, i));
    dims.push_back(std::move(dim));
  }
  return dims;
}

absl::StatusOr<Value> Emitter::KnownTensor(const TensorValue& tensor) {
  if (tensor.weak && tensor.fact != nullptr) return NotYet(*tensor.fact);
  const int input = graph_.InputIndex(tensor);
  if (input < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        NameOf(tensor),
        " is a tensor, known only when the op runs; a value that is known when the "
        "graph is built must stand here: an attribute, a shape, or an input that is a constant"));
  }
  const tensorflow::Tensor* constant = facts_.Constant(input);
  if (constant == nullptr) return NotYet(absl::StrCat("the value of ", NameOf(tensor)));
  return ValueOf(*constant);
}

absl::StatusOr<Value> Emitter::Known(const Value& value) {
  if (const TensorValue* tensor = value.as_tensor(); tensor != nullptr) return KnownTensor(*tensor);
  if (const ShapeValue* shape = value.as_shape();
      shape != nullptr && shape->source.node != nullptr) {
    TF_ASSIGN_OR_RETURN(int64_t rank, Rank(*shape));
    std::vector<int64_t> sizes(rank);
    for (int i = 0; i < rank; ++i) {
      sizes[i] = graph_.Dim(shape->source, i);
      if (sizes[i] < 0) return NotYet(absl::StrCat("dim ", i, " of ", NameOf(shape->source)));
    }
    ShapeValue known;
    TF_RETURN_IF_ERROR(
        tensorflow::PartialTensorShape::BuildPartialTensorShape(sizes, &known.known));
    return Value::Shape(std::move(known));
  }
  if (value.as_list() == nullptr) return value;
  Value::List known;
  for (const Value& item : *value.as_list()) {
    TF_ASSIGN_OR_RETURN(Value next, Known(item));
    known.push_back(std::move(next));
  }
  return Value::MakeList(std::move(known), value.kind());
}

}  // namespace composite
