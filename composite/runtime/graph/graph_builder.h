// The graph that an evaluation makes: nodes with readable names and the author's places, shapes
// inferred as they are added, and the FunctionDef of it all. Knows nothing of programs.
#ifndef COMPOSITE_RUNTIME_GRAPH_GRAPH_BUILDER_H_
#define COMPOSITE_RUNTIME_GRAPH_GRAPH_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/graph/list_shapes.h"
#include "composite/runtime/value/value.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

class GraphBuilder {
 public:
  // The graph of an op's expansion.
  explicit GraphBuilder(FactReader* facts);
  // The graph of a function inside of it: a branch, a loop's condition or body. Tensors of `outer`,
  // which must outlive this, may be used like its own; each becomes an argument at its first use.
  explicit GraphBuilder(GraphBuilder* outer);

  // The i-th flattened input of the op, to be added in order.
  absl::StatusOr<TensorValue> AddInput(int index);

  // An argument of an inner function that stands for no one tensor: what a loop carries. What its
  // shape depends on is for the caller to read.
  absl::StatusOr<TensorValue> AddParameter(tensorflow::DataType dtype,
                                           const tensorflow::PartialTensorShape& shape);

  // The argument of an inner function that a tensor of an outer graph is; an own tensor is itself.
  absl::StatusOr<TensorValue> Capture(const TensorValue& tensor);
  // The outer tensors that became arguments, in order.
  std::vector<TensorValue> captures() const;

  // A node with the op and attributes of `def`, all of them; inputs are filled in here, and the
  // name is made unique (from the op's when it is empty or no valid name). Errors are those of the
  // op's own shape function, among others.
  absl::StatusOr<std::vector<TensorValue>> AddNode(tensorflow::NodeDef def,
                                                   const tensorflow::OpDef& op_def,
                                                   absl::Span<const TensorValue> inputs);

  // Equal small constants share a node.
  absl::StatusOr<TensorValue> AddConstant(const tensorflow::Tensor& value);

  // What is known of a tensor's shape, -1 when it is not. Reads the facts that this depends on.
  int64_t Rank(const TensorValue& tensor);
  int64_t Dim(const TensorValue& tensor, int dim);
  tensorflow::PartialTensorShape Shape(const TensorValue& tensor);
  // The op input that this tensor is, -1 if it is none.
  int InputIndex(const TensorValue& tensor) const;
  // The tensor that a captured one is in the graph that made it; another is itself.
  TensorValue Origin(const TensorValue& tensor) const;

  // The shape that was inferred, for the shapes of other tensors. It counts as no read: decisions
  // are for Rank and Dim.
  tensorflow::PartialTensorShape Inferred(const TensorValue& tensor);
  // Says more than an op's own shape function knows.
  absl::Status SetInferred(const TensorValue& tensor, const tensorflow::PartialTensorShape& shape);

  // What is known of a list of tensors. `ReadList` makes what that was derived from part of the
  // key.
  ListShape List(const TensorValue& tensor) const;
  void SetList(const TensorValue& tensor, ListShape list);
  void ReadList(const TensorValue& tensor);

  bool is_stateful() const { return !stateful_.empty(); }
  // How many nodes there are beside arguments.
  size_t size() const { return defs_.size(); }

  // The place and the callers that the next nodes belong to: "ops.py:12:5" and "Outer/".
  void SetContext(absl::string_view place, absl::string_view scope);

  // The function that was built: `arguments` are all of its inputs (see AddInput, AddParameter and
  // Capture) in the wanted order, `outputs` its results. In an inner graph a name that nobody else
  // has is found when `name` ends with "_".
  absl::StatusOr<tensorflow::FunctionDef> Finish(const std::string& name,
                                                 absl::Span<const TensorValue> arguments,
                                                 absl::Span<const TensorValue> outputs,
                                                 absl::Span<const std::string> output_names);

  // Functions that nodes refer to.
  void AddFunctions(std::vector<tensorflow::FunctionDef> functions);
  std::vector<tensorflow::FunctionDef> TakeFunctions() { return std::move(functions_); }

 private:
  // An argument of the graph. One of an op is its `input`, one of an inner function is a tensor of
  // an outer graph or, with a null node, a parameter.
  struct Argument {
    tensorflow::Node* node;
    std::string name;
    int input;
    TensorValue outer;
  };

  bool Owns(const TensorValue& tensor) const;
  absl::StatusOr<TensorValue> AddArgument(Argument argument, tensorflow::DataType dtype,
                                          const tensorflow::PartialTensorShape& shape);
  // Notes that something was derived from an argument's rank, or from all of its dims.
  void ReadArgument(const Argument& argument, bool only_rank);
  void AddUsedNodes(absl::Span<const TensorValue> results, tensorflow::FunctionDef* function) const;
  std::string UniqueName(absl::string_view base);
  absl::Status Connect(tensorflow::Node* node, absl::Span<const TensorValue> inputs);
  absl::Status NameOutputs(const tensorflow::Node& node, const tensorflow::OpDef& op_def);
  tensorflow::shape_inference::InferenceContext* RanksOnly(const tensorflow::Node* node);
  template <typename Answer>
  int64_t Derived(const TensorValue& tensor, Answer answer);

  FactReader* facts_;
  GraphBuilder* outer_ = nullptr;
  tensorflow::Graph graph_;
  tensorflow::ShapeRefiner refiner_;
  // Knows only the ranks of the arguments. A derived rank or dim that it knows too depends on
  // nothing else, which keeps sizes out of the expansion's key. Made at the first derived read.
  std::unique_ptr<tensorflow::ShapeRefiner> ranks_only_;
  size_t ranks_only_nodes_ = 0;

  ListShapes lists_;

  std::vector<tensorflow::Node*> nodes_;   // in order, arguments included
  std::vector<tensorflow::NodeDef> defs_;  // as in the function
  std::vector<Argument> arguments_;
  absl::flat_hash_map<int, int> argument_of_;  // node id -> index in arguments_
  absl::flat_hash_map<std::pair<tensorflow::Node*, int>, int> captured_;  // outer tensor -> same
  std::vector<std::vector<std::string>> output_refs_;  // node id -> "MatMul:product:0"
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, int> name_counts_;
  absl::flat_hash_map<std::string, TensorValue> constants_;
  std::vector<std::string> stateful_;
  tensorflow::Node* last_stateful_ = nullptr;
  std::vector<tensorflow::FunctionDef> functions_;
  std::string place_;
  std::string scope_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_GRAPH_BUILDER_H_
