#include "composite/runtime/graph/graph_builder.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "composite/runtime/base/fingerprint.h"
#include "composite/runtime/graph/equal_shapes.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/public/version.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::OpRegistry;
using tensorflow::PartialTensorShape;

// Larger constants are seldom equal, and comparing them costs.
constexpr size_t kSharedConstantBytes = 256;

bool IsNodeName(absl::string_view name) {
  if (name.empty() || !absl::ascii_isalnum(name[0])) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_.-/", c)) return false;
  }
  return true;
}

// TensorFlow's shape function of a gather ends the process where there are more batch dims than its
// tensors have dims.
absl::Status CheckBatchDims(const Node& node, absl::Span<const TensorValue> inputs,
                            tensorflow::ShapeRefiner* refiner) {
  int64_t batch_dims = 0;
  if (node.type_string() != "GatherV2") return absl::OkStatus();
  if (!TryGetNodeAttr(node.attrs(), "batch_dims", &batch_dims)) return absl::OkStatus();
  auto* context = refiner->GetContext(inputs[1].node);
  const auto indices = context->output(inputs[1].index);
  if (!context->RankKnown(indices) || context->Rank(indices) >= batch_dims) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "batch_dims is ", batch_dims, ", and the rank of the indices is ", context->Rank(indices)));
}

}  // namespace

GraphBuilder::GraphBuilder(FactReader* facts)
    : facts_(facts),
      graph_(OpRegistry::Global()),
      refiner_(TF_GRAPH_DEF_VERSION, OpRegistry::Global()) {
  refiner_.set_require_shape_inference_fns(false);
}

GraphBuilder::GraphBuilder(GraphBuilder* outer) : GraphBuilder(outer->facts_) {
  outer_ = outer;
  SetContext(outer->place_, outer->scope_);
}

void GraphBuilder::SetContext(absl::string_view place, absl::string_view scope) {
  place_.assign(place.data(), place.size());
  scope_.assign(scope.data(), scope.size());
}

std::string GraphBuilder::UniqueName(absl::string_view base) {
  std::string name(base);
  int& count = name_counts_[name];
  while (!names_.insert(name).second) name = absl::StrCat(base, "_", ++count);
  return name;
}

bool GraphBuilder::Owns(const TensorValue& tensor) const {
  const int id = tensor.node->id();
  return id < graph_.num_node_ids() && graph_.FindNodeId(id) == tensor.node;
}

absl::StatusOr<TensorValue> GraphBuilder::AddArgument(Argument argument, DataType dtype,
                                                      const PartialTensorShape& shape) {
  NodeDef def;
  argument.name = UniqueName(argument.name);
  def.set_name(argument.name);
  def.set_op("_Arg");
  (*def.mutable_attr())["T"].set_type(dtype);
  (*def.mutable_attr())["index"].set_i(arguments_.size());
  TF_ASSIGN_OR_RETURN(argument.node, graph_.AddNode(def));
  TF_RETURN_IF_ERROR(refiner_.AddNode(argument.node));
  const TensorValue tensor{argument.node, 0, dtype, false, nullptr};
  TF_RETURN_IF_ERROR(SetInferred(tensor, shape));
  argument_of_[argument.node->id()] = static_cast<int>(arguments_.size());
  output_refs_.resize(std::max<size_t>(output_refs_.size(), argument.node->id() + 1));
  output_refs_[argument.node->id()] = {argument.name};
  nodes_.push_back(argument.node);
  arguments_.push_back(std::move(argument));
  return tensor;
}

absl::StatusOr<TensorValue> GraphBuilder::AddInput(int index) {
  const InputFact& fact = facts_->fact(index);
  return AddArgument({nullptr, facts_->name(index), index, {}}, fact.dtype, fact.shape);
}

absl::StatusOr<TensorValue> GraphBuilder::AddParameter(DataType dtype,
                                                       const PartialTensorShape& shape) {
  return AddArgument({nullptr, "carried", -1, {}}, dtype, shape);
}

absl::StatusOr<TensorValue> GraphBuilder::Capture(const TensorValue& tensor) {
  if (outer_ == nullptr || Owns(tensor)) return tensor;
  auto [it, is_new] = captured_.try_emplace({tensor.node, tensor.index}, arguments_.size());
  TensorValue own = tensor;  // weak as the outer one is
  own.index = 0;
  if (is_new) {
    TF_ASSIGN_OR_RETURN(TensorValue argument, AddArgument({nullptr, "captured", -1, tensor},
                                                          tensor.dtype, outer_->Inferred(tensor)));
    own.node = argument.node;
    if (tensor.dtype == tensorflow::DT_VARIANT) SetList(own, outer_->List(tensor));
  } else {
    own.node = arguments_[it->second].node;
  }
  return own;
}

std::vector<TensorValue> GraphBuilder::captures() const {
  std::vector<TensorValue> captured;
  for (const Argument& argument : arguments_) {
    if (argument.outer.node != nullptr) captured.push_back(argument.outer);
  }
  return captured;
}

absl::StatusOr<std::vector<TensorValue>> GraphBuilder::AddNode(
    NodeDef def, const tensorflow::OpDef& op_def, absl::Span<const TensorValue> given) {
  std::vector<TensorValue> inputs;
  for (const TensorValue& tensor : given) {
    TF_ASSIGN_OR_RETURN(TensorValue own, Capture(tensor));
    inputs.push_back(std::move(own));
  }
  // A node's name may not start with the underscore of an internal op's.
  const absl::string_view base =
      IsNodeName(def.name()) ? absl::string_view(def.name()) : absl::StripPrefix(def.op(), "_");
  def.set_name(UniqueName(absl::StrCat(scope_, base)));
  // TensorFlow prints the original name in its run-time errors, so the author's place is in them.
  def.mutable_experimental_debug_info()->add_original_node_names(
      place_.empty() ? def.name() : absl::StrCat(def.name(), " (", place_, ")"));
  for (const TensorValue& input : inputs) {
    def.add_input(output_refs_[input.node->id()][input.index]);
  }
  // Stateful nodes run in the order of the source, as they do in a tf.function.
  if (op_def.is_stateful() && last_stateful_ != nullptr) {
    def.add_input(absl::StrCat("^", last_stateful_->name()));
  }
  TF_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(def));
  TF_RETURN_IF_ERROR(Connect(node, inputs));
  if (op_def.is_stateful()) {
    if (last_stateful_ != nullptr) graph_.AddControlEdge(last_stateful_, node, true);
    last_stateful_ = node;
    stateful_.push_back(def.name());
  }
  TF_RETURN_IF_ERROR(CheckBatchDims(*node, inputs, &refiner_));
  TF_RETURN_IF_ERROR(refiner_.AddNode(node));
  ForgetUncertainShape(node, &refiner_);
  TF_RETURN_IF_ERROR(lists_.Follow(node, &refiner_));
  TF_RETURN_IF_ERROR(NameOutputs(*node, op_def));
  nodes_.push_back(node);
  defs_.push_back(std::move(def));
  std::vector<TensorValue> outputs(node->num_outputs());
  for (int i = 0; i < node->num_outputs(); ++i) {
    outputs[i] = TensorValue{node, i, node->output_type(i), false, nullptr};
  }
  return outputs;
}

absl::Status GraphBuilder::Connect(Node* node, absl::Span<const TensorValue> inputs) {
  if (static_cast<int>(inputs.size()) != node->num_inputs()) {
    return absl::InternalError(absl::StrCat(node->type_string(), " takes ", node->num_inputs(),
                                            " tensors, was given ", inputs.size()));
  }
  for (int i = 0; i < node->num_inputs(); ++i) {
    const DataType wanted = tensorflow::BaseType(node->input_type(i));
    if (inputs[i].dtype != wanted || tensorflow::IsRefType(node->input_type(i))) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " of ", node->type_string(), " is ",
                       tensorflow::DataTypeString(node->input_type(i)),
                       ", but the tensor given is ", tensorflow::DataTypeString(inputs[i].dtype)));
    }
    graph_.AddEdge(inputs[i].node, inputs[i].index, node, i);
  }
  return absl::OkStatus();
}

// In a FunctionDef an output is "<node>:<output arg>:<index in it>".
absl::Status GraphBuilder::NameOutputs(const Node& node, const tensorflow::OpDef& op_def) {
  tensorflow::NameRangeMap ranges;
  TF_RETURN_IF_ERROR(
      tensorflow::NameRangesForNode(node.attrs(), op_def, /*inputs=*/nullptr, &ranges));
  if (static_cast<int>(output_refs_.size()) <= node.id()) output_refs_.resize(node.id() + 1);
  std::vector<std::string>& refs = output_refs_[node.id()];
  refs.resize(node.num_outputs());
  for (const auto& [arg, range] : ranges) {
    for (int i = range.first; i < range.second; ++i) {
      refs[i] = absl::StrCat(node.name(), ":", arg, ":", i - range.first);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorValue> GraphBuilder::AddConstant(const tensorflow::Tensor& value) {
  NodeDef def;
  def.set_op("Const");
  (*def.mutable_attr())["dtype"].set_type(value.dtype());
  tensorflow::TensorProto* proto = (*def.mutable_attr())["value"].mutable_tensor();
  if (value.NumElements() <= 1) {
    value.AsProtoField(proto);
  } else {
    value.AsProtoTensorContent(proto);
  }
  std::string key;
  if (proto->ByteSizeLong() <= kSharedConstantBytes) {
    key = proto->SerializeAsString();
    auto it = constants_.find(key);
    if (it != constants_.end()) return it->second;
  }
  static const tensorflow::OpDef* op_def = [] {
    const tensorflow::OpDef* found = nullptr;
    OpRegistry::Global()->LookUpOpDef("Const", &found).IgnoreError();
    return found;
  }();
  TF_ASSIGN_OR_RETURN(std::vector<TensorValue> outputs, AddNode(std::move(def), *op_def, {}));
  if (!key.empty()) constants_.emplace(std::move(key), outputs[0]);
  return outputs[0];
}

// Those that results and state depend on; the others would have no effect.
void GraphBuilder::AddUsedNodes(absl::Span<const TensorValue> results,
                                tensorflow::FunctionDef* function) const {
  std::vector<const Node*> open;
  absl::flat_hash_set<const Node*> used;
  auto use = [&](const Node* node) {
    if (used.insert(node).second) open.push_back(node);
  };
  for (const TensorValue& result : results) use(result.node);
  if (last_stateful_ != nullptr) use(last_stateful_);  // after all others
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node* source : node->in_nodes()) use(source);
  }
  auto def = defs_.begin();
  for (const Node* node : nodes_) {
    if (argument_of_.contains(node->id())) continue;
    if (used.contains(node)) *function->add_node_def() = *def;
    ++def;
  }
}

absl::StatusOr<tensorflow::FunctionDef> GraphBuilder::Finish(
    const std::string& name, absl::Span<const TensorValue> arguments,
    absl::Span<const TensorValue> outputs, absl::Span<const std::string> output_names) {
  tensorflow::FunctionDef function;
  tensorflow::OpDef* signature = function.mutable_signature();
  signature->set_is_stateful(!stateful_.empty());
  std::vector<TensorValue> results;
  for (const TensorValue& output : outputs) {
    TF_ASSIGN_OR_RETURN(TensorValue own, Capture(output));
    results.push_back(std::move(own));
  }
  for (const TensorValue& argument : arguments) {
    TF_ASSIGN_OR_RETURN(TensorValue own, Capture(argument));
    auto* arg = signature->add_input_arg();
    arg->set_name(own.node->name());
    arg->set_type(own.dtype);
  }
  if (arguments.size() != arguments_.size()) {
    return absl::InternalError("a function was finished without all of its arguments");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    auto* arg = signature->add_output_arg();
    arg->set_name(output_names[i]);
    arg->set_type(results[i].dtype);
    (*function.mutable_ret())[output_names[i]] =
        output_refs_[results[i].node->id()][results[i].index];
  }
  for (const std::string& node : stateful_) {
    signature->add_control_output(node);
    (*function.mutable_control_ret())[node] = node;
  }
  AddUsedNodes(results, &function);
  // The same for the same content, in every process.
  signature->set_name(absl::EndsWith(name, "_")
                          ? absl::StrCat(name, absl::Hex(FingerprintOf(function), absl::kZeroPad16))
                          : name);
  return function;
}

void GraphBuilder::AddFunctions(std::vector<tensorflow::FunctionDef> functions) {
  for (tensorflow::FunctionDef& function : functions) {
    auto same = [&](const tensorflow::FunctionDef& known) {
      return known.signature().name() == function.signature().name();
    };
    if (absl::c_none_of(functions_, same)) functions_.push_back(std::move(function));
  }
}

}  // namespace composite
