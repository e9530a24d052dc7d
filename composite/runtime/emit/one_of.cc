#include "composite/runtime/emit/one_of.h"

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/algorithm/container.h"
#include "composite/runtime/emit/inner_function.h"
#include "composite/runtime/graph/common_shape.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::PartialTensorShape;

// What is known of all shapes, which decide which nodes there are.
PartialTensorShape CommonShape(const std::vector<TensorValue>& tensors, GraphBuilder* graph) {
  PartialTensorShape common = graph->Shape(tensors[0]);
  for (const TensorValue& tensor : tensors) common = Common(common, graph->Shape(tensor));
  return common;
}

// An index from the start. Gather refuses one that is out of range.
absl::StatusOr<Value> FromStart(const Value& index, int64_t size, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(TensorValue given, emitter->ToTensor(index, tensorflow::DT_INT64));
  const Value where = Value::Tensor(std::move(given));
  TF_ASSIGN_OR_RETURN(Value negative, emitter->Call("Less", {"x", "y"}, {where, Value::Int(0)}));
  TF_ASSIGN_OR_RETURN(Value wrapped, emitter->Call("AddV2", {"x", "y"}, {where, Value::Int(size)}));
  return emitter->Call("SelectV2", {"condition", "t", "e"}, {negative, wrapped, where});
}

absl::StatusOr<TensorValue> Gathered(const Value& params, const Value& index, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value item, emitter->Call("GatherV2", {"params", "indices", "axis"},
                                                {params, index, Value::Int(0)}));
  return *item.as_tensor();
}

// The index as Case takes it. Case runs its last branch for one that is out of range.
absl::StatusOr<TensorValue> BranchIndex(const Value& index, int64_t size, Emitter* emitter) {
  Value::List places;
  for (int64_t i = 0; i < size; ++i) places.push_back(Value::Int(i));
  TF_ASSIGN_OR_RETURN(TensorValue all,
                      emitter->ToTensor(Value::MakeList(std::move(places)), tensorflow::DT_INT32));
  return Gathered(Value::Tensor(std::move(all)), index, emitter);
}

absl::StatusOr<TensorValue> Case(const std::vector<TensorValue>& tensors, const Value& index,
                                 const PartialTensorShape& shape, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(TensorValue branch,
                      BranchIndex(index, static_cast<int64_t>(tensors.size()), emitter));
  std::deque<InnerFunction> functions;
  std::vector<InnerFunction*> branches;
  std::vector<TensorValue> results;
  for (const TensorValue& tensor : tensors) {
    branches.push_back(&functions.emplace_back(emitter));
    TF_ASSIGN_OR_RETURN(TensorValue own, branches.back()->graph.Capture(tensor));
    results.push_back(std::move(own));
  }
  const std::vector<TensorValue> captures = AllCaptures(branches);
  tensorflow::NodeDef def;
  def.set_op("Case");
  auto& attrs = *def.mutable_attr();
  for (const TensorValue& tensor : captures) attrs["Tin"].mutable_list()->add_type(tensor.dtype);
  attrs["Tout"].mutable_list()->add_type(tensors[0].dtype);
  // Not the shape: it follows from those of the inputs, and the expansion may serve others.
  attrs["output_shapes"].mutable_list();
  for (size_t i = 0; i < results.size(); ++i) {
    TF_ASSIGN_OR_RETURN(tensorflow::AttrValue function,
                        FinishInner("item", captures, {results[i]}, branches[i]));
    *attrs["branches"].mutable_list()->add_func() = function.func();
  }
  std::vector<TensorValue> operands = {branch};
  operands.insert(operands.end(), captures.begin(), captures.end());
  TF_ASSIGN_OR_RETURN(std::vector<TensorValue> outputs,
                      AddControlNode(std::move(def), operands, branches));
  TF_RETURN_IF_ERROR(emitter->graph().SetInferred(outputs[0], shape));
  return outputs[0];
}

}  // namespace

absl::StatusOr<TensorValue> OneOf(const std::vector<TensorValue>& tensors, const Value& index,
                                  Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(Value from_start,
                      FromStart(index, static_cast<int64_t>(tensors.size()), emitter));
  const PartialTensorShape shape = CommonShape(tensors, &emitter->graph());
  if (!shape.IsFullyDefined()) return Case(tensors, from_start, shape, emitter);
  Value::List values;
  for (const TensorValue& tensor : tensors) values.push_back(Value::Tensor(tensor));
  TF_ASSIGN_OR_RETURN(Value packed,
                      emitter->Call("Pack", {"values"}, {Value::MakeList(std::move(values))}));
  return Gathered(packed, from_start, emitter);
}

}  // namespace composite
