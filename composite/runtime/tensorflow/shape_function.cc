#include "composite/runtime/tensorflow/shape_function.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "composite/runtime/expand/body_shapes.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/program/signature.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// The context gives attributes by name only.
tensorflow::NodeDef AttrsOf(const tensorflow::OpDef& op_def, InferenceContext* c) {
  tensorflow::NodeDef def;
  def.set_op(op_def.name());
  for (const auto& attr : op_def.attr()) {
    if (const AttrValue* value = c->GetAttr(attr.name()); value != nullptr) {
      (*def.mutable_attr())[attr.name()] = *value;
    }
  }
  return def;
}

absl::StatusOr<std::vector<InputFact>> FactsOf(const std::vector<DataType>& types,
                                               InferenceContext* c) {
  if (static_cast<int>(types.size()) != c->num_inputs()) {
    return absl::InvalidArgumentError(absl::StrCat("the attributes describe ", types.size(),
                                                   " inputs, the node has ", c->num_inputs()));
  }
  std::vector<InputFact> facts(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    facts[i].dtype = types[i];
    tensorflow::TensorShapeProto proto;
    c->ShapeHandleToProto(c->input(i), &proto);
    TF_RETURN_IF_ERROR(
        tensorflow::PartialTensorShape::BuildPartialTensorShape(proto, &facts[i].shape));
  }
  return facts;
}

// To ask for a value makes TensorFlow evaluate the input and call the shape function again, so it
// is done only when the evaluation needs one.
absl::StatusOr<std::shared_ptr<const Expansion>> ExpandFor(
    const std::shared_ptr<const OpVersion>& version, AttrSlice attrs, std::vector<InputFact>* facts,
    InferenceContext* c) {
  auto expansion = GetExpansion(version, attrs, *facts);
  if (!IsNotYet(expansion.status())) return expansion;
  bool more = false;
  for (size_t i = 0; i < facts->size(); ++i) {
    (*facts)[i].constant = c->input_tensor(i);
    more |= (*facts)[i].constant != nullptr;
  }
  return more ? GetExpansion(version, attrs, *facts) : expansion;
}

bool IsIndexType(DataType type) {
  return type == tensorflow::DT_INT32 || type == tensorflow::DT_INT64;
}

// Elements of an input that is used as a shape, -1 for unknown ones; empty when nothing is known.
std::vector<int64_t> KnownElements(int input, InferenceContext* c) {
  c->request_input_tensor_as_partial_shape(input);
  const std::vector<ShapeHandle>& shapes = c->input_tensors_as_shapes();
  if (input >= static_cast<int>(shapes.size()) || !c->RankKnown(shapes[input])) return {};
  std::vector<int64_t> elements;
  for (int i = 0; i < c->Rank(shapes[input]); ++i) {
    const DimensionHandle dim = c->Dim(shapes[input], i);
    elements.push_back(c->ValueKnown(dim) ? c->Value(dim) : -1);
  }
  return elements;
}

// Gives `shapes` the values of inputs that shape functions inside ask for; whether there were any.
absl::StatusOr<bool> GiveValues(const std::vector<int>& wanted, const std::vector<InputFact>& facts,
                                InferenceContext* c, BodyShapes* shapes) {
  bool any = false;
  for (int input : wanted) {
    if (const tensorflow::Tensor* value = c->input_tensor(input); value != nullptr) {
      TF_RETURN_IF_ERROR(shapes->SetConstant(input, *value));
      any = true;
    } else if (IsIndexType(facts[input].dtype) && facts[input].shape.dims() == 1) {
      const std::vector<int64_t> elements = KnownElements(input, c);
      if (elements.empty()) continue;
      TF_RETURN_IF_ERROR(shapes->SetVector(input, elements));
      any = true;
    }
  }
  return any;
}

absl::Status SetOutputs(const BodyShapes& shapes, InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) {
    TF_ASSIGN_OR_RETURN(tensorflow::PartialTensorShape shape, shapes.OutputShape(i));
    ShapeHandle handle;
    TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(shape, &handle));
    c->set_output(i, handle);
  }
  return absl::OkStatus();
}

absl::Status InferShapes(const std::string& op_name, InferenceContext* c) {
  if (IsAltered(c->GetAttr(kMeansAttr), c->GetAttr(kFunctionAttr))) {
    return tensorflow::shape_inference::UnknownShape(c);
  }
  auto found = Registry::Global().Find(op_name, VersionOf(c->GetAttr(VersionAttr(op_name))));
  if (op_name == kFunctionOp && absl::IsNotFound(found.status())) {
    // In a model that is being loaded; the context does not show its functions.
    return tensorflow::shape_inference::UnknownShape(c);
  }
  TF_ASSIGN_OR_RETURN(auto version, std::move(found));
  const tensorflow::NodeDef def = AttrsOf(version->op_def, c);
  const AttrSlice attrs(def);
  TF_ASSIGN_OR_RETURN(std::vector<FlatArg> inputs, Flatten(version->op_def.input_arg(), attrs));
  TF_ASSIGN_OR_RETURN(std::vector<InputFact> facts, FactsOf(FlatTypes(inputs), c));
  auto expansion = ExpandFor(version, attrs, &facts, c);
  if (IsNotYet(expansion.status())) {
    for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->UnknownShape());
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(expansion.status());
  TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body, (*expansion)->Body());
  BodyShapes shapes(**expansion, *body, facts);
  TF_RETURN_IF_ERROR(shapes.Run());
  if (const std::vector<int> wanted = shapes.WantedInputs(); !wanted.empty()) {
    BodyShapes better(**expansion, *body, facts);
    TF_ASSIGN_OR_RETURN(bool any, GiveValues(wanted, facts, c, &better));
    if (any) {
      TF_RETURN_IF_ERROR(better.Run());
      return SetOutputs(better, c);
    }
  }
  return SetOutputs(shapes, c);
}

}  // namespace

tensorflow::OpShapeInferenceFn ShapeFunction(const std::string& op_name) {
  return [op_name](InferenceContext* c) { return InferShapes(op_name, c); };
}

}  // namespace composite
