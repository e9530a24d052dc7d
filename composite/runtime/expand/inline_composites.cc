#include "composite/runtime/expand/inline_composites.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/expand/evaluator.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/program/signature.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::Node;
using tensorflow::NodeDef;

bool IsComposite(const std::string& op) { return Registry::Global().Contains(op); }

// Puts one function into a graph.
class Inliner {
 public:
  Inliner(const Expansion& function, absl::Span<const TensorValue> inputs, std::string scope,
          Emitter* emitter)
      : function_(function), inputs_(inputs), scope_(std::move(scope)), emitter_(*emitter) {}

  absl::StatusOr<std::vector<TensorValue>> Run() {
    TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body, function_.Body());
    std::vector<Node*> order;
    tensorflow::GetReversePostOrder(*body->graph, &order, tensorflow::NodeComparatorID());
    for (Node* node : order) {
      if (!node->IsOp() || node->IsRetval()) continue;
      auto outputs = Add(*node);
      if (!outputs.ok()) {
        absl::Status status = outputs.status();
        status.SetPayload(kNodePayload, absl::Cord(node->name()));
        return status;
      }
      outputs_[node] = *std::move(outputs);
    }
    std::vector<TensorValue> results;
    for (const Node* end : body->ret_nodes) {
      TF_ASSIGN_OR_RETURN(std::vector<TensorValue> result, InputsOf(*end));
      results.push_back(std::move(result[0]));
    }
    return results;
  }

 private:
  absl::StatusOr<std::vector<TensorValue>> InputsOf(const Node& node) const {
    std::vector<TensorValue> inputs;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Edge* edge = nullptr;
      TF_RETURN_IF_ERROR(node.input_edge(i, &edge));
      inputs.push_back(outputs_.at(edge->src())[edge->src_output()]);
    }
    return inputs;
  }

  absl::StatusOr<std::vector<TensorValue>> Add(const Node& node) {
    if (node.IsArg()) {
      return std::vector<TensorValue>{inputs_[node.attrs().Find("index")->i()]};
    }
    TF_ASSIGN_OR_RETURN(const std::vector<TensorValue> inputs, InputsOf(node));
    if (IsComposite(node.type_string())) return Expanded(node, inputs);
    NodeDef def = node.def();
    def.clear_input();
    emitter_.graph().SetContext("", scope_);
    return emitter_.graph().AddNode(std::move(def), node.op_def(), inputs);
  }

  absl::StatusOr<std::vector<TensorValue>> Expanded(const Node& node,
                                                    absl::Span<const TensorValue> inputs) {
    TF_ASSIGN_OR_RETURN(auto version, Registry::Global().Resolve(node.type_string(), node.attrs()));
    const std::string scope = absl::StrCat(scope_, node.name(), "/");
    if (version->function != nullptr) {
      Expansion called;
      called.name = version->digest;
      called.library = version->function;
      return Inliner(called, inputs, scope, &emitter_).Run();
    }
    TF_ASSIGN_OR_RETURN(const NodeDef complete, CompleteAttrs(version->op_def, node.attrs()));
    return Evaluator(&emitter_).Run(*version, inputs, tensorflow::AttrSlice(complete), scope);
  }

  const Expansion& function_;
  const absl::Span<const TensorValue> inputs_;
  const std::string scope_;
  Emitter& emitter_;
  absl::flat_hash_map<const Node*, std::vector<TensorValue>> outputs_;
};

}  // namespace

bool HasComposites(const tensorflow::FunctionDef& function) {
  return absl::c_any_of(function.node_def(),
                        [](const NodeDef& node) { return IsComposite(node.op()); });
}

absl::StatusOr<std::vector<TensorValue>> InlineComposites(const Expansion& function,
                                                          absl::Span<const TensorValue> inputs,
                                                          Emitter* emitter) {
  for (const std::string& name : function.library->ListFunctionNames()) {
    if (name != function.name) emitter->graph().AddFunctions({*function.library->Find(name)});
  }
  return Inliner(function, inputs, "", emitter).Run();
}

}  // namespace composite
