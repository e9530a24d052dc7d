// The graph that an evaluation makes: nodes with readable names and the author's places, shapes
// inferred as they are added, and the FunctionDef of it all. Knows nothing of programs.
#ifndef COMPOSITE_RUNTIME_GRAPH_BUILDER_H_
#define COMPOSITE_RUNTIME_GRAPH_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "composite/runtime/facts.h"
#include "composite/runtime/value.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

class GraphBuilder {
 public:
  explicit GraphBuilder(FactReader* facts);

  // The i-th flattened input of the op, to be added in order.
  absl::StatusOr<TensorValue> AddInput(int index);

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
  // The op input that this tensor is, -1 if it is none.
  int InputIndex(const TensorValue& tensor) const;

  // The place and the callers that the next nodes belong to: "ops.py:12:5" and "Outer/".
  void SetContext(absl::string_view place, absl::string_view scope);

  // The function that was built, with `outputs` as its results.
  absl::StatusOr<tensorflow::FunctionDef> Finish(const std::string& name,
                                                 absl::Span<const TensorValue> outputs,
                                                 absl::Span<const std::string> output_names) const;

 private:
  std::string UniqueName(absl::string_view base);
  absl::Status Connect(tensorflow::Node* node, absl::Span<const TensorValue> inputs);
  absl::Status NameOutputs(const tensorflow::Node& node, const tensorflow::OpDef& op_def);
  tensorflow::shape_inference::InferenceContext* RanksOnly(const tensorflow::Node* node);
  template <typename Answer>
  int64_t Derived(const TensorValue& tensor, Answer answer);

  FactReader* facts_;
  tensorflow::Graph graph_;
  tensorflow::ShapeRefiner refiner_;
  // Knows only the ranks of the inputs. A derived rank or dim that it knows too depends on nothing
  // else, which keeps sizes out of the expansion's key. Made at the first derived read.
  std::unique_ptr<tensorflow::ShapeRefiner> ranks_only_;
  size_t ranks_only_nodes_ = 0;

  std::vector<tensorflow::Node*> nodes_;   // in order, inputs included
  std::vector<tensorflow::NodeDef> defs_;  // as in the function
  std::vector<std::string> input_names_;
  absl::flat_hash_map<int, int> input_index_;          // node id -> input
  std::vector<std::vector<std::string>> output_refs_;  // node id -> "MatMul:product:0"
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, int> name_counts_;
  absl::flat_hash_map<std::string, TensorValue> constants_;
  std::vector<std::string> stateful_;
  tensorflow::Node* last_stateful_ = nullptr;
  std::string place_;
  std::string scope_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_GRAPH_BUILDER_H_
