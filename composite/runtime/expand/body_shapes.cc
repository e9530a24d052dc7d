#include "composite/runtime/expand/body_shapes.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/authors_place.h"
#include "composite/runtime/graph/common_shape.h"
#include "composite/runtime/graph/known_shape.h"
#include "composite/runtime/graph/not_yet.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/public/version.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

bool HasEmptyInput(InferenceContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const ShapeHandle shape = context->input(i);
    for (int d = 0; context->RankKnown(shape) && d < context->Rank(shape); ++d) {
      if (context->Value(context->Dim(shape, d)) == 0) return true;
    }
  }
  return false;
}

}  // namespace

BodyShapes::BodyShapes(const Expansion& expansion, const tensorflow::FunctionBody& body,
                       absl::Span<const InputFact> facts)
    : expansion_(expansion),
      body_(body),
      facts_(facts),
      graph_(tensorflow::OpRegistry::Global()),
      refiner_(TF_GRAPH_DEF_VERSION, tensorflow::OpRegistry::Global()) {
  refiner_.set_require_shape_inference_fns(false);
}

absl::Status BodyShapes::SetConstant(int input, const tensorflow::Tensor& value) {
  NodeDef def;
  def.set_name(absl::StrCat("constant_", input));
  def.set_op("Const");
  (*def.mutable_attr())["dtype"].set_type(value.dtype());
  value.AsProtoTensorContent((*def.mutable_attr())["value"].mutable_tensor());
  TF_ASSIGN_OR_RETURN(stand_ins_[input], graph_.AddNode(def));
  return absl::OkStatus();
}

absl::StatusOr<Node*> BodyShapes::ScalarNode(DataType dtype, int64_t value) {
  NodeDef def;
  def.set_name(absl::StrCat("scalar_", graph_.num_node_ids()));
  def.set_op(value >= 0 ? "Const" : "Placeholder");
  (*def.mutable_attr())["dtype"].set_type(dtype);
  if (value < 0) {
    (*def.mutable_attr())["shape"].mutable_shape();  // a scalar
  } else {
    auto* tensor = (*def.mutable_attr())["value"].mutable_tensor();
    tensor->set_dtype(dtype);
    tensor->mutable_tensor_shape();
    if (dtype == tensorflow::DT_INT32) {
      tensor->add_int_val(static_cast<int32_t>(value));
    } else {
      tensor->add_int64_val(value);
    }
  }
  TF_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(def));
  TF_RETURN_IF_ERROR(refiner_.AddNode(node));
  return node;
}

// The refiner sees through Pack to those elements that are constants.
absl::Status BodyShapes::SetVector(int input, absl::Span<const int64_t> elements) {
  const DataType dtype = facts_[input].dtype;
  NodeDef def;
  def.set_name(absl::StrCat("vector_", input));
  def.set_op("Pack");
  (*def.mutable_attr())["T"].set_type(dtype);
  (*def.mutable_attr())["N"].set_i(elements.size());
  (*def.mutable_attr())["axis"].set_i(0);
  std::vector<Node*> scalars;
  for (int64_t element : elements) {
    TF_ASSIGN_OR_RETURN(Node * scalar, ScalarNode(dtype, element));
    scalars.push_back(scalar);
  }
  TF_ASSIGN_OR_RETURN(Node * pack, graph_.AddNode(def));
  for (size_t i = 0; i < scalars.size(); ++i) graph_.AddEdge(scalars[i], 0, pack, i);
  stand_ins_[input] = pack;
  return absl::OkStatus();
}

absl::Status BodyShapes::AddArg(const Node* node) {
  const int input = node->attrs().Find("index")->i();
  auto it = stand_ins_.find(input);
  if (it != stand_ins_.end()) {
    copies_[node] = it->second;
    return refiner_.AddNode(it->second);
  }
  Node* added = stand_ins_.empty() ? const_cast<Node*>(node) : graph_.CopyNode(node);
  copies_[node] = added;
  TF_RETURN_IF_ERROR(refiner_.AddNode(added));
  InferenceContext* context = refiner_.GetContext(added);
  ShapeHandle shape;
  TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(facts_[input].shape, &shape));
  context->set_output(0, shape);
  if (!input_lists_.empty()) lists_.Set(added, 0, input_lists_[input]);
  return absl::OkStatus();
}

absl::Status BodyShapes::Add(const Node* node) {
  if (node->IsArg()) return AddArg(node);
  Node* added = const_cast<Node*>(node);  // the refiner takes a const one; maps want one kind
  if (!stand_ins_.empty()) {
    added = graph_.CopyNode(node);
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) continue;
      graph_.AddEdge(copies_.at(edge->src()), edge->src_output(), added, edge->dst_input());
    }
  }
  copies_[node] = added;
  absl::Status status = refiner_.AddNode(added);
  if (!status.ok()) return WithPrefix(status, AuthorsPlace(node->def()));
  if (node->type_string() == "MatMul") {
    has_empty_product_ |= HasEmptyInput(refiner_.GetContext(added));
  }
  if (node->IsIfNode()) return FollowBranches(added);
  return node->IsWhileNode() ? FollowTrips(added) : lists_.Follow(added, &refiner_);
}

std::vector<ListShape> BodyShapes::InputLists(const Node* node, int first) const {
  std::vector<ListShape> lists(node->num_inputs() - first);
  for (const Edge* edge : node->in_edges()) {
    if (edge->dst_input() < first) continue;  // or a control edge
    lists[edge->dst_input() - first] = lists_.Of(edge->src(), edge->src_output());
  }
  return lists;
}

absl::Status BodyShapes::FollowTrips(const Node* node) {
  std::vector<ListShape> lists = InputLists(node, /*first=*/0);
  if (absl::c_none_of(lists, [](const ListShape& list) { return list.known; })) {
    return absl::OkStatus();
  }
  InferenceContext* context = refiner_.GetContext(node);
  std::vector<InputFact> facts;
  for (int i = 0; i < node->num_inputs(); ++i) {
    facts.push_back({node->input_type(i), KnownShape(context, context->output(i)), nullptr});
  }
  TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body,
                      expansion_.Body(node->attrs().Find("body")->func().name()));
  for (bool wider = true; wider;) {  // each is less than the one before
    BodyShapes trip(expansion_, *body, facts);
    trip.SetLists(lists);
    TF_RETURN_IF_ERROR(trip.Run());
    wider = false;
    for (size_t i = 0; i < lists.size(); ++i) {
      ListShape list = Common(lists[i], trip.OutputList(i));
      wider |= !(list == lists[i]);
      lists[i] = std::move(list);
    }
  }
  for (size_t i = 0; i < lists.size(); ++i) lists_.Set(node, i, std::move(lists[i]));
  return absl::OkStatus();
}

absl::Status BodyShapes::FollowBranches(const Node* node) {
  InferenceContext* context = refiner_.GetContext(node);
  std::vector<InputFact> facts;
  for (int i = 1; i < node->num_inputs(); ++i) {  // after the condition
    facts.push_back({node->input_type(i), KnownShape(context, context->input(i)), nullptr});
  }
  std::vector<tensorflow::PartialTensorShape> shapes[2];
  std::vector<ListShape> lists[2];
  for (int i = 0; i < 2; ++i) {
    const std::string& name =
        node->attrs().Find(i == 0 ? "then_branch" : "else_branch")->func().name();
    TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body, expansion_.Body(name));
    BodyShapes branch(expansion_, *body, facts);
    branch.SetLists(InputLists(node, /*first=*/1));
    TF_RETURN_IF_ERROR(branch.Run());
    has_empty_product_ |= branch.has_empty_product();
    for (int j = 0; j < node->num_outputs(); ++j) {
      TF_ASSIGN_OR_RETURN(tensorflow::PartialTensorShape shape, branch.OutputShape(j));
      shapes[i].push_back(std::move(shape));
      lists[i].push_back(branch.OutputList(j));
    }
  }
  for (int j = 0; j < node->num_outputs(); ++j) {
    ShapeHandle shape;
    TF_RETURN_IF_ERROR(
        context->MakeShapeFromPartialTensorShape(Common(shapes[0][j], shapes[1][j]), &shape));
    context->set_output(j, shape);
    lists_.Set(node, j, Common(lists[0][j], lists[1][j]));
  }
  return absl::OkStatus();
}

absl::Status BodyShapes::Run() {
  // Ids grow along the edges: an expansion has no cycles and was instantiated in order.
  for (const Node* node : body_.graph->op_nodes()) {
    if (!node->IsRetval()) TF_RETURN_IF_ERROR(Add(node));
  }
  return absl::OkStatus();
}

std::vector<int> BodyShapes::WantedInputs() const {
  std::vector<const Node*> open;
  absl::flat_hash_set<const Node*> seen;
  auto visit = [&](const Node* node) {
    if (seen.insert(node).second) open.push_back(node);
  };
  for (const Node* node : body_.graph->op_nodes()) {
    auto it = copies_.find(node);
    if (it == copies_.end()) continue;
    InferenceContext* context = refiner_.GetContext(it->second);
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) continue;
      if (context->requested_input_tensor(edge->dst_input()) ||
          context->requested_input_tensor_as_partial_shape(edge->dst_input())) {
        visit(edge->src());
      }
    }
  }
  std::vector<int> wanted;
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node->IsArg()) wanted.push_back(node->attrs().Find("index")->i());
    for (const Node* source : node->in_nodes()) visit(source);
  }
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

absl::StatusOr<tensorflow::PartialTensorShape> BodyShapes::OutputShape(int output) const {
  const Edge* edge = nullptr;
  TF_RETURN_IF_ERROR(body_.ret_nodes[output]->input_edge(0, &edge));
  InferenceContext* context = refiner_.GetContext(copies_.at(edge->src()));
  return KnownShape(context, context->output(edge->src_output()));
}

ListShape BodyShapes::OutputList(int output) const {
  const Edge* edge = nullptr;
  if (!body_.ret_nodes[output]->input_edge(0, &edge).ok()) return ListShape();
  return lists_.Of(copies_.at(edge->src()), edge->src_output());
}

}  // namespace composite
