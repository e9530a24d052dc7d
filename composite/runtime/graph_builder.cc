#include "composite/runtime/graph_builder.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
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
using tensorflow::ShapeRefiner;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// Larger constants are seldom equal, and comparing them costs.
constexpr size_t kSharedConstantBytes = 256;

bool IsNodeName(absl::string_view name) {
  if (name.empty() || !absl::ascii_isalnum(name[0])) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_.-/", c)) return false;
  }
  return true;
}

// Tells `refiner` what is known of the input behind an _Arg node.
absl::Status SetInputShape(const Node* node, const tensorflow::PartialTensorShape& shape,
                           bool rank_only, ShapeRefiner* refiner) {
  InferenceContext* context = refiner->GetContext(node);
  ShapeHandle handle;
  if (rank_only) {
    handle =
        shape.unknown_rank() ? context->UnknownShape() : context->UnknownShapeOfRank(shape.dims());
  } else {
    TF_RETURN_IF_ERROR(context->MakeShapeFromPartialTensorShape(shape, &handle));
  }
  context->set_output(0, handle);
  return absl::OkStatus();
}

}  // namespace

GraphBuilder::GraphBuilder(FactReader* facts)
    : facts_(facts),
      graph_(OpRegistry::Global()),
      refiner_(TF_GRAPH_DEF_VERSION, OpRegistry::Global()) {
  refiner_.set_require_shape_inference_fns(false);
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

absl::StatusOr<TensorValue> GraphBuilder::AddInput(int index) {
  const InputFact& fact = facts_->fact(index);
  NodeDef def;
  def.set_name(UniqueName(facts_->name(index)));
  def.set_op("_Arg");
  (*def.mutable_attr())["T"].set_type(fact.dtype);
  (*def.mutable_attr())["index"].set_i(index);
  TF_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(def));
  TF_RETURN_IF_ERROR(refiner_.AddNode(node));
  TF_RETURN_IF_ERROR(SetInputShape(node, fact.shape, /*rank_only=*/false, &refiner_));
  input_index_[node->id()] = index;
  output_refs_.resize(node->id() + 1);
  output_refs_[node->id()] = {def.name()};
  input_names_.push_back(def.name());
  nodes_.push_back(node);
  return TensorValue{node, 0, fact.dtype, false, nullptr};
}

absl::StatusOr<std::vector<TensorValue>> GraphBuilder::AddNode(
    NodeDef def, const tensorflow::OpDef& op_def, absl::Span<const TensorValue> inputs) {
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
  TF_RETURN_IF_ERROR(refiner_.AddNode(node));
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

int GraphBuilder::InputIndex(const TensorValue& tensor) const {
  auto it = input_index_.find(tensor.node->id());
  return it == input_index_.end() ? -1 : it->second;
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
    auto it = input_index_.find(next->id());
    if (it == input_index_.end()) continue;
    const auto& shape = facts_->fact(it->second).shape;
    if (!SetInputShape(next, shape, /*rank_only=*/true, ranks_only_.get()).ok()) return nullptr;
  }
  return ranks_only_->GetContext(node);
}

// `answer` of an inner tensor, and what it depends on: the ranks of the inputs it is made of when
// those decide it, else their whole shapes.
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
    if (auto it = input_index_.find(node->id()); it != input_index_.end()) {
      const int64_t rank = facts_->Rank(it->second);
      for (int64_t d = 0; !by_ranks && d < rank; ++d) facts_->Dim(it->second, static_cast<int>(d));
    }
    for (const Node* source : node->in_nodes()) {
      if (seen.insert(source).second) open.push_back(source);
    }
  }
  return value;
}

int64_t GraphBuilder::Rank(const TensorValue& tensor) {
  if (int input = InputIndex(tensor); input >= 0) return facts_->Rank(input);
  return Derived(tensor, [&](InferenceContext* c) -> int64_t {
    ShapeHandle shape = c->output(tensor.index);
    return c->RankKnown(shape) ? c->Rank(shape) : -1;
  });
}

int64_t GraphBuilder::Dim(const TensorValue& tensor, int dim) {
  if (int input = InputIndex(tensor); input >= 0) return facts_->Dim(input, dim);
  return Derived(tensor, [&](InferenceContext* c) -> int64_t {
    ShapeHandle shape = c->output(tensor.index);
    if (!c->RankKnown(shape) || dim >= c->Rank(shape)) return -1;
    return c->ValueKnown(c->Dim(shape, dim)) ? c->Value(c->Dim(shape, dim)) : -1;
  });
}

absl::StatusOr<tensorflow::FunctionDef> GraphBuilder::Finish(
    const std::string& name, absl::Span<const TensorValue> outputs,
    absl::Span<const std::string> output_names) const {
  tensorflow::FunctionDef function;
  tensorflow::OpDef* signature = function.mutable_signature();
  signature->set_name(name);
  signature->set_is_stateful(!stateful_.empty());
  for (int i = 0; i < facts_->size(); ++i) {
    auto* arg = signature->add_input_arg();
    arg->set_name(input_names_[i]);
    arg->set_type(facts_->fact(i).dtype);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto* arg = signature->add_output_arg();
    arg->set_name(output_names[i]);
    arg->set_type(outputs[i].dtype);
    (*function.mutable_ret())[output_names[i]] =
        output_refs_[outputs[i].node->id()][outputs[i].index];
  }
  for (const std::string& node : stateful_) {
    signature->add_control_output(node);
    (*function.mutable_control_ret())[node] = node;
  }
  for (const NodeDef& def : defs_) *function.add_node_def() = def;
  return function;
}

}  // namespace composite
