#include "composite/runtime/regions/region_loops.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/regions/region_node.h"
#include "composite/runtime/variables/update_node.h"
#include "composite/runtime/variables/uses.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::FunctionBody;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefLibrary;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;
using Variables = std::map<int, DataType>;

constexpr char kCalledAttr[] = "f";
constexpr char kXlaAttr[] = "_XlaMustCompile";

absl::Status NoLoop(const Node& node, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node.name(), " of ", node.type_string(), " ", why));
}

absl::StatusOr<const FunctionDef*> FunctionOf(const Node& loop, const char* attr,
                                              const FunctionLibraryDefinition& library) {
  const tensorflow::AttrValue* named = loop.attrs().Find(attr);
  const FunctionDef* function = named == nullptr ? nullptr : library.Find(named->func().name());
  if (function == nullptr) return NoLoop(loop, "runs a function that is not in the library");
  return function;
}

absl::StatusOr<std::unique_ptr<FunctionBody>> BodyOf(const Node& loop, const char* attr,
                                                     const FunctionLibraryDefinition& library) {
  TF_ASSIGN_OR_RETURN(const FunctionDef* function, FunctionOf(loop, attr, library));
  std::unique_ptr<FunctionBody> body;
  const auto& attrs = loop.attrs().Find(attr)->func().attr();
  TF_RETURN_IF_ERROR(tensorflow::FunctionDefToBodyHelper(*function, tensorflow::AttrSlice(&attrs),
                                                         &library, &body));
  return body;
}

bool HasSeveralSums(const FunctionDef& function) {
  return absl::c_count_if(function.node_def(), [](const NodeDef& node) {
           return TraitsOf(node.op()).work == Work::kSums;
         }) > 1;
}

// The input of a node that is its only one.
const Node& OnlyInput(const Node& node) {
  const Node* input = nullptr;
  TF_CHECK_OK(node.input_node(0, &input));
  return *input;
}

// Its control edges are all that it has, and what waits in a loop waits for reads of variables.
bool IsNoOp(const Node& node) { return node.type_string() == "NoOp"; }

bool IsVariable(const Node& node) {
  return node.IsArg() && node.output_type(0) == tensorflow::DT_RESOURCE;
}

// Of an argument or a result.
int IndexOf(const Node& end) { return static_cast<int>(end.attrs().Find("index")->i()); }

// Copies a function of a loop, in which variables are values.
class LoopFunction {
 public:
  LoopFunction(const FunctionBody& body, const Variables& variables)
      : body_(body),
        variables_(variables),
        graph_(std::make_unique<Graph>(tensorflow::OpRegistry::Global())) {}

  absl::StatusOr<FunctionDef> Make() {
    for (const Node* arg : body_.arg_nodes) TF_RETURN_IF_ERROR(AddEnd(*arg, "arg_"));
    for (const Node* node : body_.graph->op_nodes()) {
      if (!Vanishes(*node)) TF_RETURN_IF_ERROR(AddNode(*node, CopyOf(*node, NextName())));
    }
    for (const Node* ret : body_.ret_nodes) TF_RETURN_IF_ERROR(AddEnd(*ret, "result_"));
    for (const auto& [node, copy] : copies_) AddEdges(*node, copy);
    FunctionDefLibrary made;
    FunctionDef* function = made.add_function();
    TF_RETURN_IF_ERROR(tensorflow::GraphToFunctionDef(*graph_, kRegionPrefix, function));
    function->mutable_signature()->set_name(absl::StrCat(kRegionPrefix, FunctionDigest(made)));
    return *function;
  }

 private:
  static bool Vanishes(const Node& node) {
    return node.IsArg() || node.IsRetval() || IsNoOp(node) || node.type_string() == kReadOp;
  }

  std::string NextName() { return absl::StrCat("n", copies_.size()); }

  absl::Status AddNode(const Node& node, NodeDef def) {
    TF_ASSIGN_OR_RETURN(Node * copy, graph_->AddNode(std::move(def)));
    copies_.emplace_back(&node, copy);
    copy_of_[&node] = copy;
    return absl::OkStatus();
  }

  absl::Status AddEnd(const Node& end, const char* stem) {
    NodeDef def = CopyOf(end, absl::StrCat(stem, IndexOf(end)));
    const Node& value = end.IsArg() ? end : OnlyInput(end);
    if (IsVariable(value)) (*def.mutable_attr())["T"].set_type(variables_.at(IndexOf(value)));
    return AddNode(end, std::move(def));
  }

  void AddEdges(const Node& node, Node* copy) {
    for (const Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge()) continue;
      const Node* from = edge->src();
      // What reads a variable reads its value.
      const bool reads = from->type_string() == kReadOp;
      if (reads) from = &OnlyInput(*from);
      graph_->AddEdge(copy_of_.at(from), reads ? 0 : edge->src_output(), copy, edge->dst_input());
    }
  }

  const FunctionBody& body_;
  const Variables& variables_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::pair<const Node*, Node*>> copies_;
  absl::flat_hash_map<const Node*, Node*> copy_of_;
};

// Reads the functions of a loop, and finds out whether a region may have them.
class Reading {
 public:
  Reading(const Node& loop, const FunctionLibraryDefinition& library)
      : loop_(loop), library_(library) {}

  // A call runs its function once. XLA fuses the ops of a function that it compiles, and nothing of
  // a single one.
  absl::StatusOr<RegionLoop> Call() {
    constexpr char kSeveral[] = "runs a function of several ops";
    TF_ASSIGN_OR_RETURN(const FunctionDef* function, FunctionOf(loop_, kCalledAttr, library_));
    // Before a graph is made, which of a whole model takes long.
    if (HasSeveralSums(*function)) return NoLoop(loop_, kSeveral);
    TF_ASSIGN_OR_RETURN(const auto body, BodyOf(loop_, kCalledAttr, library_));
    for (const Node* node : body->graph->op_nodes()) TF_RETURN_IF_ERROR(Count(*node));
    if (made_.computing > 1) return NoLoop(loop_, kSeveral);
    for (size_t i = 0; i < body->arg_nodes.size(); ++i) {
      TF_RETURN_IF_ERROR(CheckRead(*body->arg_nodes[i], static_cast<int>(i)));
    }
    TF_RETURN_IF_ERROR(CheckDtypes());
    TF_ASSIGN_OR_RETURN(made_.body, LoopFunction(*body, made_.variables).Make());
    const auto of_function = function->attr().find(kXlaAttr);
    const tensorflow::AttrValue* of_node = loop_.attrs().Find(kXlaAttr);
    made_.is_of_xla = (of_function != function->attr().end() && of_function->second.b()) ||
                      (of_node != nullptr && of_node->b());
    return std::move(made_);
  }

  absl::StatusOr<RegionLoop> Loop() {
    TF_ASSIGN_OR_RETURN(const auto cond, BodyOf(loop_, "cond", library_));
    TF_ASSIGN_OR_RETURN(const auto body, BodyOf(loop_, "body", library_));
    for (const FunctionBody* function : {cond.get(), body.get()}) {
      for (const Node* node : function->graph->op_nodes()) TF_RETURN_IF_ERROR(Count(*node));
    }
    TF_RETURN_IF_ERROR(CheckCondition(OnlyInput(*cond->ret_nodes[0])));
    TF_RETURN_IF_ERROR(CheckPassed(*body));
    TF_ASSIGN_OR_RETURN(made_.cond, LoopFunction(*cond, made_.variables).Make());
    TF_ASSIGN_OR_RETURN(made_.body, LoopFunction(*body, made_.variables).Make());
    return std::move(made_);
  }

 private:
  absl::Status Count(const Node& node) {
    if (node.IsArg() || node.IsRetval() || IsNoOp(node)) return absl::OkStatus();
    if (node.type_string() == kReadOp) return CountRead(node);
    const RegionRole role = RoleInLoop(node);
    if (role == RegionRole::kOutside) return NoLoop(node, "is in no region");
    made_.nodes += 1;
    made_.computing += role == RegionRole::kComputes || role == RegionRole::kSums ? 1 : 0;
    made_.sums += role == RegionRole::kSums ? 1 : 0;
    return absl::OkStatus();
  }

  absl::Status CountRead(const Node& read) {
    const Node& variable = OnlyInput(read);
    if (!IsVariable(variable)) return NoLoop(read, "reads what no argument is");
    const DataType dtype = read.output_type(0);
    const auto known = made_.variables.emplace(IndexOf(variable), dtype).first;
    if (known->second != dtype) return NoLoop(read, "reads as another dtype");
    return absl::OkStatus();
  }

  // Kernels have loops whose trips can be counted beforehand; of others, the condition shows most.
  static absl::Status CheckCondition(const Node& test) {
    static const auto& kBounds =
        *new absl::flat_hash_set<std::string>{"Less", "LessEqual", "Greater", "GreaterEqual"};
    if (test.IsIdentity()) return CheckCondition(OnlyInput(test));
    if (test.type_string() == "LogicalAnd") {
      for (const Edge* edge : test.in_edges()) {
        if (!edge->IsControlEdge()) TF_RETURN_IF_ERROR(CheckCondition(*edge->src()));
      }
      return absl::OkStatus();
    }
    if (kBounds.contains(test.type_string()) && tensorflow::DataTypeIsInteger(test.input_type(0))) {
      return absl::OkStatus();
    }
    return NoLoop(test, "does not bound the trips");
  }

  // What is passed on as a variable is read alone, in trips and behind the loop.
  absl::Status CheckPassed(const FunctionBody& body) const {
    for (size_t i = 0; i < body.arg_nodes.size(); ++i) {
      const Node& arg = *body.arg_nodes[i];
      TF_RETURN_IF_ERROR(CheckRead(arg, static_cast<int>(i)));
      if (IsVariable(arg) && &OnlyInput(*body.ret_nodes[i]) != &arg) {
        return NoLoop(arg, "is not passed on");
      }
    }
    TF_RETURN_IF_ERROR(CheckDtypes());
    for (const Edge* edge : loop_.out_edges()) {
      if (made_.variables.count(edge->src_output()) != 0) {
        return NoLoop(loop_, "gives a variable on");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckRead(const Node& arg, int index) const {
    if (!IsVariable(arg) || made_.variables.count(index) != 0) return absl::OkStatus();
    return NoLoop(arg, "is a resource that is not read");
  }

  absl::Status CheckDtypes() const {
    DtypeSet dtypes;
    for (int i = 0; i < loop_.num_inputs(); ++i) {
      const auto variable = made_.variables.find(i);
      dtypes.Add(variable == made_.variables.end() ? loop_.input_type(i) : variable->second);
    }
    if (!AreInside(dtypes)) return NoLoop(loop_, "carries what no kernel does");
    return absl::OkStatus();
  }

  const Node& loop_;
  const FunctionLibraryDefinition& library_;
  RegionLoop made_;
};

}  // namespace

namespace {

bool WritesInFunctions(const Node& node, VariableUses* uses) {
  if (!RunsFunctions(node)) return false;
  const Uses own = uses->Of(node);
  return own.others == Use::kWrites || absl::c_linear_search(own.inputs, Use::kWrites);
}

// Whether a node that leads to the loop writes to variables in a function. Once TensorFlow has
// inlined the function, only what takes the node's results is sure to come after the writes. The
// reads of variables that a region leaves in the place of a loop do not take them.
bool FollowsWritesInFunctions(const Node& loop, VariableUses* uses) {
  absl::flat_hash_set<const Node*> seen = {&loop};
  std::vector<const Node*> pending = {&loop};
  while (!pending.empty()) {
    const Node* at = pending.back();
    pending.pop_back();
    for (const Edge* edge : at->in_edges()) {
      const Node* from = edge->src();
      if (!from->IsOp() || !seen.insert(from).second) continue;
      if (WritesInFunctions(*from, uses)) return true;
      pending.push_back(from);
    }
  }
  return false;
}

}  // namespace

RegionLoops::RegionLoops(const Graph& graph, const FunctionLibraryDefinition& library) {
  VariableUses uses(library);
  for (const Node* node : graph.op_nodes()) {
    const Runs runs = TraitsOf(node->type_string()).runs;
    if ((runs != Runs::kLoop && runs != Runs::kCall) || IsColocated(*node)) continue;
    Reading reading(*node, library);
    auto loop = runs == Runs::kLoop ? reading.Loop() : reading.Call();
    if (loop.ok() && !loop->variables.empty() && FollowsWritesInFunctions(*node, &uses)) {
      loop = NoLoop(*node, "reads variables after a function may have written to them");
    }
    if (loop.ok()) {
      loops_.emplace(node, *std::move(loop));
    } else {
      VLOG(1) << "Composite: no loop of a region at " << node->name() << ": " << loop.status();
    }
  }
}

const RegionLoop* RegionLoops::Find(const Node& node) const {
  const auto found = loops_.find(&node);
  return found == loops_.end() ? nullptr : &found->second;
}

NodeDef CopyOfLoop(const Node& node, const RegionLoop& loop, std::string name) {
  NodeDef copy = CopyOf(node, std::move(name));
  auto& attrs = *copy.mutable_attr();
  if (loop.is_call()) {
    copy.set_op("PartitionedCall");
    for (const char* attr : {"config", "config_proto", "executor_type"}) attrs.erase(attr);
    attrs[kCalledAttr].mutable_func()->set_name(loop.body.signature().name());
    if (loop.is_of_xla) attrs[kXlaAttr].set_b(true);
    for (const auto& [index, dtype] : loop.variables) {
      attrs["Tin"].mutable_list()->set_type(index, dtype);
    }
    return copy;
  }
  copy.set_op("StatelessWhile");
  attrs["cond"].mutable_func()->set_name(loop.cond.signature().name());
  attrs["body"].mutable_func()->set_name(loop.body.signature().name());
  for (const auto& [index, dtype] : loop.variables) {
    attrs["T"].mutable_list()->set_type(index, dtype);
    auto* shapes = attrs["output_shapes"].mutable_list();  // of the variable, or none at all
    if (index >= shapes->shape_size()) continue;
    shapes->mutable_shape(index)->clear_dim();
    shapes->mutable_shape(index)->set_unknown_rank(true);
  }
  return copy;
}

}  // namespace composite
