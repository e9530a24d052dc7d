#include "composite/runtime/graph/list_shapes.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "composite/runtime/graph/common_shape.h"
#include "composite/runtime/graph/known_shape.h"
#include "tensorflow/core/common_runtime/eval_const_tensor.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"

namespace composite {
namespace {

using tensorflow::Node;
using tensorflow::PartialTensorShape;
using tensorflow::ShapeRefiner;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// What both say; the first where they contradict each other.
PartialTensorShape Merged(const PartialTensorShape& a, const PartialTensorShape& b) {
  PartialTensorShape merged;
  return a.MergeWith(b, &merged).ok() ? merged : a;
}

// The shape that a node's own shape function has for the elements of the list it gives.
PartialTensorShape Bound(InferenceContext* context) {
  const auto* given = context->output_handle_shapes_and_types(0);
  if (given == nullptr || given->empty()) return PartialTensorShape();
  return KnownShape(context, given->front().shape);
}

// The value of a scalar input if the graph shows it, else -1.
int64_t Known(const Node& node, int input, const ShapeRefiner& refiner) {
  const tensorflow::Edge* edge = nullptr;
  if (!node.input_edge(input, &edge).ok()) return -1;
  auto nothing = [](const Node&, int) { return std::optional<tensorflow::Tensor>(); };
  auto value = tensorflow::EvaluateConstantTensor(*edge->src(), edge->src_output(), refiner,
                                                  nothing, /*runner=*/std::nullopt);
  if (!value.ok() || !value->has_value() || (*value)->NumElements() != 1) return -1;
  const tensorflow::Tensor& tensor = **value;
  return tensor.dtype() == tensorflow::DT_INT32 ? tensor.flat<int32_t>()(0) : -1;
}

ListShape Reserved(const Node& node, ShapeRefiner* refiner) {
  ListShape list;
  list.known = true;
  list.bound = Bound(refiner->GetContext(&node));
  list.length = Known(node, /*input=*/1, *refiner);
  return list;
}

ListShape FromTensor(InferenceContext* context) {
  ListShape list;
  list.known = true;
  list.bound = Bound(context);
  const PartialTensorShape whole = KnownShape(context, context->input(0));
  if (whole.unknown_rank() || whole.dims() == 0) return list;
  list.length = whole.dim_size(0);
  PartialTensorShape element = whole;
  element.RemoveDim(0);
  list.written = true;
  list.items = Merged(list.bound, element);
  return list;
}

ListShape Written(const Node& node, InferenceContext* context, ListShape list) {
  bool grows = true;
  if (!GetNodeAttr(node.attrs(), "resize_if_index_out_of_bounds", &grows).ok() || grows) {
    list.length = -1;
  }
  ListShape item;
  item.known = item.written = true;
  item.length = list.length;
  item.bound = list.bound;
  item.items = Merged(list.bound, KnownShape(context, context->input(2)));
  return Common(list, item);
}

absl::Status Refine(const PartialTensorShape& shape, InferenceContext* context) {
  ShapeHandle handle;
  const PartialTensorShape merged = Merged(KnownShape(context, context->output(0)), shape);
  TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(merged, &handle));
  context->set_output(0, handle);
  return absl::OkStatus();
}

}  // namespace

bool ListShape::operator==(const ListShape& other) const {
  return known == other.known && length == other.length && written == other.written &&
         bound.IsIdenticalTo(other.bound) && items.IsIdenticalTo(other.items);
}

ListShape Common(const ListShape& a, const ListShape& b) {
  ListShape common;
  if (!a.known || !b.known) return common;
  common.known = true;
  common.length = a.length == b.length ? a.length : -1;
  common.bound = Common(a.bound, b.bound);
  common.written = a.written || b.written;
  common.items = !a.written ? b.items : !b.written ? a.items : Common(a.items, b.items);
  return common;
}

ListShape ListShapes::Of(const Node* node, int output) const {
  auto it = lists_.find({node, output});
  return it == lists_.end() ? ListShape() : it->second;
}

void ListShapes::Set(const Node* node, int output, ListShape list) {
  if (list.known) lists_[{node, output}] = std::move(list);
}

absl::Status ListShapes::Follow(const Node* node, ShapeRefiner* refiner) {
  const std::string& op = node->type_string();
  if (!absl::StartsWith(op, "TensorList")) return absl::OkStatus();
  InferenceContext* context = refiner->GetContext(node);
  if (op == "TensorListReserve") {
    Set(node, 0, Reserved(*node, refiner));
  } else if (op == "TensorListFromTensor") {
    Set(node, 0, FromTensor(context));
  }
  const tensorflow::Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(node->input_edge(0, &edge));
  const ListShape list = Of(edge->src(), edge->src_output());
  if (!list.known) return absl::OkStatus();
  if (op == "TensorListSetItem") {
    Set(node, 0, Written(*node, context, list));
  } else if (op == "TensorListGetItem") {
    return Refine(list.element(), context);
  } else if (op == "TensorListStack" && !list.element().unknown_rank()) {
    std::vector<int64_t> sizes = {list.length};
    for (int i = 0; i < list.element().dims(); ++i) sizes.push_back(list.element().dim_size(i));
    return Refine(KnownShape(sizes), context);
  }
  return absl::OkStatus();
}

}  // namespace composite
