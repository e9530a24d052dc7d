// Shape inference over an expansion's graph, for given input shapes and constants.
#ifndef COMPOSITE_RUNTIME_EXPAND_BODY_SHAPES_H_
#define COMPOSITE_RUNTIME_EXPAND_BODY_SHAPES_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/graph/list_shapes.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// One inference. Use it once.
class BodyShapes {
 public:
  // Of the body of `expansion`, or of a function that it refers to. All must outlive this.
  BodyShapes(const Expansion& expansion, const tensorflow::FunctionBody& body,
             absl::Span<const InputFact> facts);

  // Values that stand for inputs: a constant, or for a vector of which only some elements are known
  // (a shape), its elements, -1 for the others. Call before Run.
  absl::Status SetConstant(int input, const tensorflow::Tensor& value);
  absl::Status SetVector(int input, absl::Span<const int64_t> elements);
  // What is known of the inputs that are lists. Call before Run.
  void SetLists(std::vector<ListShape> lists) { input_lists_ = std::move(lists); }

  // InvalidArgument with the author's place for shapes that do not fit.
  absl::Status Run();

  // After Run: inputs whose values some shape function asked for.
  std::vector<int> WantedInputs() const;
  absl::StatusOr<tensorflow::PartialTensorShape> OutputShape(int output) const;
  ListShape OutputList(int output) const;
  // Whether an operand of a MatMul is known to have no elements, in branches as well.
  bool has_empty_product() const { return has_empty_product_; }

 private:
  absl::Status Add(const tensorflow::Node* node);
  absl::Status AddArg(const tensorflow::Node* node);
  // The shapes that an If gives: what its branches give has in common.
  absl::Status FollowBranches(const tensorflow::Node* node);
  // What all trips of a While leave of the lists that it carries.
  absl::Status FollowTrips(const tensorflow::Node* node);
  std::vector<ListShape> InputLists(const tensorflow::Node* node, int first) const;
  absl::StatusOr<tensorflow::Node*> ScalarNode(tensorflow::DataType dtype, int64_t value);

  const Expansion& expansion_;
  const tensorflow::FunctionBody& body_;
  absl::Span<const InputFact> facts_;
  // A copy in which constants stand for inputs; made when there are some.
  tensorflow::Graph graph_;
  absl::flat_hash_map<int, tensorflow::Node*> stand_ins_;
  absl::flat_hash_map<const tensorflow::Node*, tensorflow::Node*> copies_;
  tensorflow::ShapeRefiner refiner_;
  std::vector<ListShape> input_lists_;  // none, or one for each input
  ListShapes lists_;
  bool has_empty_product_ = false;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_BODY_SHAPES_H_
