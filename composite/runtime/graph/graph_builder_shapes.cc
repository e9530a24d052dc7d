// The part of GraphBuilder that knows its tensors: which they are, their shapes, and what an answer
// depends on.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "composite/runtime/graph/equal_shapes.h"
#include "composite/runtime/graph/graph_builder.h"
#include "composite/runtime/graph/known_shape.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/public/version.h"

namespace composite {
namespace {

using tensorflow::Node;
using tensorflow::OpRegistry;
using tensorflow::PartialTensorShape;
using tensorflow::ShapeRefiner;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status SetShape(InferenceContext* context, int output, const PartialTensorShape& shape) {
  ShapeHandle handle;
  TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shape, &handle));
  context->set_output(output, handle);
  return absl::OkStatus();
}

PartialTensorShape ShapeOf(InferenceContext* context, int output) {
  return KnownShape(context, context->output(output));
}

}  // namespace

TensorValue GraphBuilder::Origin(const TensorValue& tensor) const {
  if (outer_ == nullptr) return tensor;
  if (!Owns(tensor)) return outer_->Origin(tensor);
  auto it = argument_of_.find(tensor.node->id());
  if (it == argument_of_.end() || arguments_[it->second].outer.node == nullptr) return tensor;
  return outer_->Origin(arguments_[it->second].outer);
}

int GraphBuilder::InputIndex(const TensorValue& tensor) const {
  const TensorValue origin = Origin(tensor);
  if (outer_ != nullptr && !Owns(origin)) return outer_->InputIndex(origin);
  auto it = argument_of_.find(origin.node->id());
  return it == argument_of_.end() ? -1 : arguments_[it->second].input;
}

InferenceContext* GraphBuilder::RanksOnly(const Node* node) {
  if (ranks_only_ == nullptr) {
    ranks_only_ = std::make_unique<ShapeRefiner>(TF_GRAPH_DEF_VERSION, OpRegistry::Global());
    ranks_only_->set_require_shape_inference_fns(false);
  }
  for (; ranks_only_nodes_ < nodes_.size(); ++ranks_only_nodes_) {
    Node* next = nodes_[ranks_only_nodes_];
    // Knowing less, the shape functions cannot fail where the other refiner's passed.
    if (!ranks_only_->AddNode(next).ok()) return nullptr;
    ForgetUncertainShape(next, ranks_only_.get());
    if (!argument_of_.contains(next->id())) continue;
    const int rank = ShapeOf(refiner_.GetContext(next), 0).dims();
    const PartialTensorShape shape =
        rank < 0 ? PartialTensorShape() : PartialTensorShape(std::vector<int64_t>(rank, -1));
    if (!SetShape(ranks_only_->GetContext(next), 0, shape).ok()) return nullptr;
  }
  return ranks_only_->GetContext(node);
}

void GraphBuilder::ReadArgument(const Argument& argument, bool only_rank) {
  const bool is_input = argument.outer.node == nullptr;
  if (is_input && argument.input < 0) return;  // a parameter
  const int64_t rank = is_input ? facts_->Rank(argument.input) : outer_->Rank(argument.outer);
  for (int d = 0; !only_rank && d < rank; ++d) {
    is_input ? facts_->Dim(argument.input, d) : outer_->Dim(argument.outer, d);
  }
}

// `answer` of an inner tensor, and what it depends on: the ranks of the arguments it is made of
// when those decide it, else their whole shapes.
template <typename Answer>
int64_t GraphBuilder::Derived(const TensorValue& tensor, Answer answer) {
  int64_t value = -1;
  InferenceContext* ranks_only = RanksOnly(tensor.node);
  if (ranks_only != nullptr) value = answer(ranks_only);
  const bool by_ranks = value >= 0;
  if (!by_ranks) value = answer(refiner_.GetContext(tensor.node));
  std::vector<const Node*> open = {tensor.node};
  absl::flat_hash_set<const Node*> seen = {tensor.node};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (auto it = argument_of_.find(node->id()); it != argument_of_.end()) {
      ReadArgument(arguments_[it->second], by_ranks);
    }
    for (const Node* source : node->in_nodes()) {
      if (seen.insert(source).second) open.push_back(source);
    }
  }
  return value;
}

PartialTensorShape GraphBuilder::Inferred(const TensorValue& tensor) {
  if (outer_ != nullptr && !Owns(tensor)) return outer_->Inferred(tensor);
  return ShapeOf(refiner_.GetContext(tensor.node), tensor.index);
}

absl::Status GraphBuilder::SetInferred(const TensorValue& tensor, const PartialTensorShape& shape) {
  return SetShape(refiner_.GetContext(tensor.node), tensor.index, shape);
}

ListShape GraphBuilder::List(const TensorValue& tensor) const {
  if (outer_ != nullptr && !Owns(tensor)) return outer_->List(tensor);
  return lists_.Of(tensor.node, tensor.index);
}

void GraphBuilder::SetList(const TensorValue& tensor, ListShape list) {
  lists_.Set(tensor.node, tensor.index, std::move(list));
}

void GraphBuilder::ReadList(const TensorValue& tensor) {
  if (outer_ != nullptr && !Owns(tensor)) return outer_->ReadList(tensor);
  if (!List(tensor).known) return;
  Derived(tensor, [](InferenceContext*) -> int64_t { return -1; });
}

int64_t GraphBuilder::Rank(const TensorValue& tensor) {
  if (outer_ != nullptr && !Owns(tensor)) return outer_->Rank(tensor);
  if (auto it = argument_of_.find(tensor.node->id()); it != argument_of_.end()) {
    ReadArgument(arguments_[it->second], /*only_rank=*/true);
    return ShapeOf(refiner_.GetContext(tensor.node), 0).dims();
  }
  return Derived(tensor, [&](InferenceContext* c) -> int64_t {
    ShapeHandle shape = c->output(tensor.index);
    return c->RankKnown(shape) ? c->Rank(shape) : -1;
  });
}

int64_t GraphBuilder::Dim(const TensorValue& tensor, int dim) {
  if (outer_ != nullptr && !Owns(tensor)) return outer_->Dim(tensor, dim);
  if (auto it = argument_of_.find(tensor.node->id()); it != argument_of_.end()) {
    const Argument& argument = arguments_[it->second];
    if (argument.outer.node != nullptr) return outer_->Dim(argument.outer, dim);
    if (argument.input >= 0) return facts_->Dim(argument.input, dim);
  }
  return Derived(tensor, [&](InferenceContext* c) -> int64_t {
    ShapeHandle shape = c->output(tensor.index);
    if (!c->RankKnown(shape) || dim >= c->Rank(shape)) return -1;
    return c->ValueKnown(c->Dim(shape, dim)) ? c->Value(c->Dim(shape, dim)) : -1;
  });
}

PartialTensorShape GraphBuilder::Shape(const TensorValue& tensor) {
  const int64_t rank = Rank(tensor);
  if (rank < 0) return PartialTensorShape();
  std::vector<int64_t> sizes(rank);
  for (int d = 0; d < rank; ++d) sizes[d] = Dim(tensor, d);
  return KnownShape(sizes);
}

}  // namespace composite
