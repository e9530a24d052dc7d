#include "composite/runtime/regions/region_function.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/regions/region_node.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

bool IsShape(const Node& node) { return node.type_string() == "Shape"; }

using Inside = absl::flat_hash_set<const Node*>;

bool IsReadOutside(const NodeOutput& value, const Inside& inside) {
  return absl::c_any_of(value.first->out_edges(), [&](const Edge* edge) {
    return edge->src_output() == value.second && !inside.contains(edge->dst());
  });
}

// What a view is of.
NodeOutput FirstInput(const Node& view) {
  const auto is_given = [](const Edge* edge) { return edge->dst_input() == 0; };
  const Edge* edge = *absl::c_find_if(view.in_edges(), is_given);
  return {edge->src(), edge->src_output()};
}

// The same, behind the views that are inside.
NodeOutput Viewed(Node* view, const Inside& inside) {
  NodeOutput value = {view, 0};
  while (IsView(*value.first) && inside.contains(value.first)) value = FirstInput(*value.first);
  return value;
}

// Copies a region into a graph of its own, node by node.
class Copy {
 public:
  Copy(const std::vector<Node*>& nodes, const std::vector<Node*>& views, const RegionLoops& loops)
      : loops_(loops),
        members_(nodes.begin(), nodes.end()),
        views_(views.begin(), views.end()),
        graph_(std::make_unique<Graph>(tensorflow::OpRegistry::Global())) {
    for (const Node* node : nodes) inside_[node] = nullptr;
  }

  // Arguments for what a node reads of the graph that is no weight. They come first: the dims that
  // vary are those of the first argument, see kernels/shape_policy.h.
  absl::Status AddData(const Node& node) {
    for (int i = 0; i < node.num_inputs(); ++i) {
      TF_ASSIGN_OR_RETURN(const Argument from, Read(node, i));
      const Node* source = from.value.first;
      if (views_.contains(source)) {
        TF_RETURN_IF_ERROR(AddData(*source));
      } else if (!from.is_variable && !IsWeight(*source) && !IsShape(*source)) {
        TF_RETURN_IF_ERROR(Input(from).status());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Add(Node* node) {
    const RegionLoop* loop = loops_.Find(*node);
    std::vector<NodeOutput> inputs;
    for (int i = 0; i < node->num_inputs(); ++i) {
      TF_ASSIGN_OR_RETURN(const Argument from, Read(*node, i));
      TF_ASSIGN_OR_RETURN(NodeOutput input, Input(from));
      inputs.push_back(input);
    }
    std::string name = absl::StrCat("n", next_++);
    if (loop != nullptr) AddFunctions(*loop);
    TF_ASSIGN_OR_RETURN(
        Node * copy, graph_->AddNode(loop == nullptr ? CopyOf(*node, std::move(name))
                                                     : CopyOfLoop(*node, *loop, std::move(name))));
    for (size_t i = 0; i < inputs.size(); ++i) {
      graph_->AddEdge(inputs[i].first, inputs[i].second, copy, static_cast<int>(i));
    }
    inside_[node] = copy;
    return absl::OkStatus();
  }

  // A result for each output of a member that is read outside: also by a node that the region has
  // a copy of, which stays where it is.
  absl::Status AddResults(Node* node) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (IsReadOutside({node, i}, members_)) TF_RETURN_IF_ERROR(AddResult({node, i}));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RegionFunction> Function() {
    RegionFunction made;
    TF_RETURN_IF_ERROR(tensorflow::GraphToFunctionDef(*graph_, kRegionPrefix, &made.function));
    TF_ASSIGN_OR_RETURN(FunctionDefLibrary library, WithCalled(made.function));
    made.function.mutable_signature()->set_name(
        absl::StrCat(kRegionPrefix, FunctionDigest(std::move(library))));
    for (auto& [name, function] : functions_) made.loops.push_back(std::move(function));
    made.arguments = std::move(arguments_);
    made.results = std::move(results_);
    for (const auto& [node, copy] : inside_) made.origins[copy->name()] = node;
    return made;
  }

 private:
  // What an input of a node is.
  absl::StatusOr<Argument> Read(const Node& node, int input) const {
    const Edge* edge = nullptr;
    TF_RETURN_IF_ERROR(node.input_edge(input, &edge));
    Argument read{{edge->src(), edge->src_output()}, node.input_type(input)};
    const RegionLoop* loop = loops_.Find(node);
    if (loop != nullptr && loop->variables.count(input) != 0) {
      read.dtype = loop->variables.at(input);
      read.is_variable = true;
    }
    return read;
  }

  void AddFunctions(const RegionLoop& loop) {
    functions_[loop.body.signature().name()] = loop.body;
    if (!loop.is_call()) functions_[loop.cond.signature().name()] = loop.cond;
  }

  // The region's function, and those that its loops and its nodes of kFunctionOp run.
  absl::StatusOr<FunctionDefLibrary> WithCalled(const FunctionDef& function) const {
    FunctionDefLibrary library;
    *library.add_function() = function;
    for (const auto& [name, run] : functions_) *library.add_function() = run;
    for (const auto& [node, copy] : inside_) {
      if (node->type_string() != kFunctionOp) continue;
      TF_ASSIGN_OR_RETURN(auto called, Registry::Global().Resolve(kFunctionOp, node->attrs()));
      library.MergeFrom(called->function->ToProto());
    }
    return library;
  }

  // Where what is read of the graph is in the copy.
  absl::StatusOr<NodeOutput> Input(const Argument& from) {
    const NodeOutput& value = from.value;
    if (auto it = inside_.find(value.first); it != inside_.end()) {
      return NodeOutput{it->second, value.second};
    }
    if (IsCopied(*value.first)) {
      TF_RETURN_IF_ERROR(Add(value.first));
      return NodeOutput{inside_[value.first], value.second};
    }
    auto [it, is_new] = argument_of_.try_emplace(std::make_pair(value, from.is_variable), nullptr);
    if (is_new) {
      const int index = static_cast<int>(arguments_.size());
      arguments_.push_back(from);
      TF_ASSIGN_OR_RETURN(it->second,
                          AddEnd("_Arg", absl::StrCat("arg_", index), index, from.dtype));
    }
    return NodeOutput{it->second, 0};
  }

  bool IsCopied(const Node& node) const {
    return RoleOf(node) == RegionRole::kCopied || views_.contains(&node) || IsShapeAtHand(node);
  }

  // Whether a node gives the shape of what the region has, which its kernel knows.
  bool IsShapeAtHand(const Node& node) const {
    const Edge* of = nullptr;
    if (!IsShape(node) || !node.input_edge(0, &of).ok()) return false;
    const NodeOutput value = {of->src(), of->src_output()};
    return inside_.find(of->src()) != inside_.end() ||
           argument_of_.find({value, false}) != argument_of_.end();
  }

  absl::Status AddResult(NodeOutput value) {
    const int index = static_cast<int>(results_.size());
    results_.push_back(value);
    TF_ASSIGN_OR_RETURN(Node * end, AddEnd("_Retval", absl::StrCat("result_", index), index,
                                           value.first->output_type(value.second)));
    graph_->AddEdge(inside_[value.first], value.second, end, 0);
    return absl::OkStatus();
  }

  absl::StatusOr<Node*> AddEnd(const char* op, const std::string& name, int index, DataType type) {
    NodeDef def;
    def.set_op(op);
    def.set_name(name);
    (*def.mutable_attr())["T"].set_type(type);
    (*def.mutable_attr())["index"].set_i(index);
    return graph_->AddNode(std::move(def));
  }

  const RegionLoops& loops_;
  const Inside members_;  // whose place the region takes
  const Inside views_;    // that stay outside
  std::unique_ptr<Graph> graph_;
  // Members and copied nodes; null: not yet copied.
  absl::flat_hash_map<const Node*, Node*> inside_;
  absl::flat_hash_map<std::pair<NodeOutput, bool>, Node*>
      argument_of_;                               // by whether it is a variable
  std::map<std::string, FunctionDef> functions_;  // that loops run
  std::vector<Argument> arguments_;
  std::vector<NodeOutput> results_;
  int next_ = 0;
};

}  // namespace

std::vector<Node*> TakeViews(std::vector<Node*>* nodes) {
  const Inside inside(nodes->begin(), nodes->end());
  absl::flat_hash_map<NodeOutput, std::vector<Node*>> views_of;  // that are read outside
  for (Node* node : *nodes) {
    if (IsView(*node) && IsReadOutside({node, 0}, inside)) {
      views_of[Viewed(node, inside)].push_back(node);
    }
  }
  Inside taken;
  for (const auto& [viewed, views] : views_of) {
    const bool is_inside = inside.contains(viewed.first);
    if (is_inside && views.size() + IsReadOutside(viewed, inside) == 1) continue;
    for (Node* view : views) {
      for (NodeOutput at = {view, 0}; at != viewed; at = FirstInput(*at.first))
        taken.insert(at.first);
    }
  }
  const auto stays =
      absl::c_stable_partition(*nodes, [&](const Node* node) { return !taken.contains(node); });
  std::vector<Node*> views(stays, nodes->end());
  nodes->erase(stays, nodes->end());
  return views;
}

absl::StatusOr<RegionFunction> MakeRegionFunction(const std::vector<Node*>& nodes,
                                                  const std::vector<Node*>& views,
                                                  const RegionLoops& loops) {
  Copy copy(nodes, views, loops);
  for (const Node* node : nodes) TF_RETURN_IF_ERROR(copy.AddData(*node));
  for (Node* node : nodes) TF_RETURN_IF_ERROR(copy.Add(node));
  for (Node* node : nodes) TF_RETURN_IF_ERROR(copy.AddResults(node));
  return copy.Function();
}

}  // namespace composite
