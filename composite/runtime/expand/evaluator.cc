#include "composite/runtime/expand/evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "composite/runtime/emit/builtins.h"
#include "composite/runtime/emit/item.h"
#include "composite/runtime/emit/operators.h"
#include "composite/runtime/emit/subscript.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/program/signature.h"
#include "composite/runtime/value/fold.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::OpDef;

// Composites that call composites. A body that calls itself without an end meets this.
constexpr int kMaxCallDepth = 64;
// A stack of TensorFlow's threads takes many times this.
constexpr int kMaxNesting = 600;
// Regions may share regions, so a small program can describe an endless evaluation.
constexpr int64_t kMaxSteps = 1 << 20;

// Set on errors that carry their place, so that only the innermost node adds its own.
constexpr char kPlacePayload[] = "composite/place";
// The last argument of a call whose node has a name that the expansion makes.
constexpr char kNameKeyword[] = "name";

// Set on the errors that the body raises itself.
constexpr char kRaisedPayload[] = "composite/raised";

absl::Status AtPlace(const absl::Status& status, const std::string& place) {
  if (place.empty() || status.GetPayload(kPlacePayload).has_value()) return status;
  absl::Status placed = WithPrefix(status, absl::StrCat(place, ": "));
  placed.SetPayload(kPlacePayload, absl::Cord(place));
  return placed;
}

// A shape as Python prints it: "(4, None)".
std::string ShapeText(const ShapeValue& shape, GraphBuilder* graph) {
  const bool lazy = shape.source.node != nullptr;
  const int64_t rank = lazy ? graph->Rank(shape.source) : shape.known.dims();
  if (rank < 0) return "<unknown>";
  std::vector<std::string> dims;
  for (int i = 0; i < rank; ++i) {
    const int64_t size = lazy ? graph->Dim(shape.source, i) : shape.known.dim_size(i);
    dims.push_back(size < 0 ? "None" : absl::StrCat(size));
  }
  return absl::StrCat("(", absl::StrJoin(dims, ", "), rank == 1 ? ",)" : ")");
}

absl::Status Raised(const ProgramNode& node, const std::vector<Value>& inputs,
                    GraphBuilder* graph) {
  std::string message = absl::StrCat(node.symbol, ": ");
  for (const Value& piece : inputs) {
    absl::StrAppend(&message, piece.as_string()  ? *piece.as_string()
                              : piece.as_shape() ? ShapeText(*piece.as_shape(), graph)
                                                 : Describe(piece));
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kRaisedPayload, absl::Cord(node.symbol));
  return status;
}

// A result of the body as the tensors of an output arg, of the dtypes that the attributes declare.
absl::StatusOr<std::vector<TensorValue>> Output(const OpDef::ArgDef& arg, const Value& value,
                                                tensorflow::AttrSlice attrs, Emitter* emitter) {
  TF_ASSIGN_OR_RETURN(FlatArg declared, Flatten(arg, attrs));
  return emitter->ToTensors(value, declared.types, declared.is_list);
}

// The values of input args and attributes, as the body sees them.
absl::StatusOr<std::vector<Value>> Arguments(const OpDef& op_def,
                                             absl::Span<const TensorValue> tensors,
                                             tensorflow::AttrSlice attrs) {
  TF_ASSIGN_OR_RETURN(const std::vector<FlatArg> inputs, Flatten(op_def.input_arg(), attrs));
  std::vector<Value> arguments;
  auto next = tensors.begin();
  for (const FlatArg& input : inputs) {
    Value::List list;
    for (size_t i = 0; i < input.types.size(); ++i) list.push_back(Value::Tensor(*next++));
    arguments.push_back(input.is_list ? Value::MakeList(std::move(list)) : std::move(list[0]));
  }
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    TF_ASSIGN_OR_RETURN(Value value, FromAttr(*attrs.Find(attr.name())));
    arguments.push_back(std::move(value));
  }
  return arguments;
}

}  // namespace

std::string NameOf(const ProgramNode& node, int result) {
  const bool named = result < static_cast<int>(node.names.size()) && !node.names[result].empty();
  return named ? absl::StrCat("`", node.names[result], "`") : "a value";
}

bool IsRaised(const absl::Status& status) { return status.GetPayload(kRaisedPayload).has_value(); }

absl::StatusOr<std::vector<TensorValue>> Evaluator::Run(const OpVersion& version,
                                                        absl::Span<const TensorValue> inputs,
                                                        tensorflow::AttrSlice attrs,
                                                        const std::string& scope) {
  TF_ASSIGN_OR_RETURN(std::vector<Value> arguments, Arguments(version.op_def, inputs, attrs));
  TF_ASSIGN_OR_RETURN(const auto lists,
                      RunOp(Frame{version, 0, scope}, std::move(arguments), attrs));
  std::vector<TensorValue> outputs;
  for (const auto& list : lists) outputs.insert(outputs.end(), list.begin(), list.end());
  return outputs;
}

absl::StatusOr<std::vector<std::vector<TensorValue>>> Evaluator::RunOp(
    const Frame& frame, std::vector<Value> arguments, tensorflow::AttrSlice attrs) {
  TF_ASSIGN_OR_RETURN(std::vector<Value> results, RunRegion(frame, 0, std::move(arguments)));
  const OpDef& op_def = frame.version.op_def;
  std::vector<std::vector<TensorValue>> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    auto tensors = Output(op_def.output_arg(i), results[i], attrs, emitter_);
    if (!tensors.ok()) {
      return AtPlace(WithPrefix(tensors.status(), absl::StrCat(op_def.name(), ": output '",
                                                               op_def.output_arg(i).name(), "': ")),
                     frame.version.place);
    }
    outputs.push_back(*std::move(tensors));
  }
  return outputs;
}

absl::StatusOr<std::vector<Value>> Evaluator::RunRegion(const Frame& frame, int index,
                                                        std::vector<Value> arguments) {
  if (nesting_ >= kMaxNesting) {
    return absl::ResourceExhaustedError(
        absl::StrCat("branches are nested deeper than ", kMaxNesting));
  }
  const ProgramRegion& region = frame.version.program.regions[index];
  arguments.resize(region.slots);
  ++nesting_;
  auto results = RunNodes(frame, region, std::move(arguments));
  --nesting_;
  return results;
}

absl::StatusOr<std::vector<Value>> Evaluator::RunNodes(const Frame& frame,
                                                       const ProgramRegion& region,
                                                       std::vector<Value> slots) {
  for (const ProgramNode& node : region.nodes) {
    if (++steps_ > kMaxSteps) {
      return AtPlace(absl::ResourceExhaustedError(absl::StrCat(
                         frame.version.op_name, " expands to more than ", kMaxSteps, " steps")),
                     node.place);
    }
    std::vector<Value> inputs;
    inputs.reserve(node.inputs.size());
    for (int slot : node.inputs) inputs.push_back(slots[slot]);
    emitter_->graph().SetContext(node.place, frame.scope);
    auto results = RunNode(frame, node, std::move(inputs));
    if (!results.ok()) return AtPlace(results.status(), node.place);
    for (int i = 0; i < node.results; ++i) slots[node.first_slot + i] = std::move((*results)[i]);
  }
  std::vector<Value> results;
  for (int slot : region.results) results.push_back(slots[slot]);
  return results;
}

absl::StatusOr<std::vector<Value>> Evaluator::RunNode(const Frame& frame, const ProgramNode& node,
                                                      std::vector<Value> inputs) {
  switch (node.kind) {
    case NodeKind::kIf:
      return RunIf(frame, node, std::move(inputs));
    case NodeKind::kWhile:
      return RunWhile(frame, node, std::move(inputs));
    case NodeKind::kApply:
      return RunRegion(frame, node.regions[0], std::move(inputs));
    case NodeKind::kUnpack:
      return emitter_->Unpack(inputs[0], node.results);
    case NodeKind::kRaise:
      return Raised(node, inputs, &emitter_->graph());
    default:
      break;
  }
  auto value =
      node.kind == NodeKind::kCall ? RunCall(frame, node, inputs) : RunSimple(node, inputs);
  if (!value.ok()) return value.status();
  std::vector<Value> results;
  results.push_back(*std::move(value));
  return results;
}

absl::StatusOr<Value> Evaluator::RunSimple(const ProgramNode& node,
                                           const std::vector<Value>& inputs) {
  switch (node.kind) {
    case NodeKind::kConstant:
      return FromConstant(node.constant);
    case NodeKind::kList:
      return Value::MakeList(inputs,
                             node.symbol.empty() ? SequenceKind::kList : SequenceKind::kTuple);
    case NodeKind::kItem:
      return Item(inputs[0], inputs[1], emitter_);
    case NodeKind::kUnary:
      return Unary(node.symbol, inputs[0], emitter_);
    case NodeKind::kBinary:
    case NodeKind::kCompare:
      return Binary(node.symbol, inputs[0], inputs[1], emitter_);
    case NodeKind::kLength:
      return emitter_->Length(inputs[0]);
    case NodeKind::kBuiltin:
      return Builtin(node.symbol, inputs, emitter_);
    case NodeKind::kSubscript:
      return Subscript(node.symbol, inputs, emitter_);
    case NodeKind::kShape: {
      TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter_->AsTensor(inputs[0]));
      return Value::Shape({std::move(tensor), {}});
    }
    case NodeKind::kRank: {
      if (inputs[0].as_shape() != nullptr) return emitter_->Length(inputs[0]);
      TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter_->AsTensor(inputs[0]));
      return emitter_->RankOf(std::move(tensor));
    }
    case NodeKind::kDtype: {
      TF_ASSIGN_OR_RETURN(TensorValue tensor, emitter_->AsTensor(inputs[0]));
      return Value::Type(tensor.dtype);
    }
    default:
      return absl::InternalError("a node kind without a meaning");
  }
}

absl::StatusOr<Value> Evaluator::RunCall(const Frame& frame, const ProgramNode& node,
                                         const std::vector<Value>& inputs) {
  absl::Span<const std::string> keywords = node.keywords;
  absl::Span<const Value> values = inputs;
  std::string name = node.name;
  if (!keywords.empty() && keywords.back() == kNameKeyword) {
    const std::string* text = values.back().as_string();
    if (text == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name of a node is a str, not ", Describe(values.back())));
    }
    name = *text;
    keywords.remove_suffix(1);
    values.remove_suffix(1);
  }
  if (!node.callee_digest.empty() || Registry::Global().Contains(node.symbol)) {
    return RunComposite(frame, node, keywords, values);
  }
  return emitter_->Call(node.symbol, keywords, values, name);
}

// Another composite is expanded in place, unless it is to stay whole: its arguments bound as for
// any op, its outputs checked against its own declaration.
absl::StatusOr<Value> Evaluator::RunComposite(const Frame& frame, const ProgramNode& node,
                                              absl::Span<const std::string> keywords,
                                              absl::Span<const Value> values) {
  if (frame.depth + 1 >= kMaxCallDepth) {
    return absl::ResourceExhaustedError(absl::StrCat("composites are nested deeper than ",
                                                     kMaxCallDepth, " at ", node.symbol,
                                                     "; does it call itself?"));
  }
  TF_ASSIGN_OR_RETURN(auto callee, Registry::Global().Find(node.symbol, node.callee_digest));
  const OpDef& op_def = callee->op_def;
  TF_ASSIGN_OR_RETURN(Binding binding, emitter_->Bind(op_def, keywords, values));
  if (absl::c_linear_search(whole_, callee->digest)) {
    (*binding.def.mutable_attr())[kProgramAttr].set_s(callee->digest);
    return emitter_->AddBound(op_def, std::move(binding));
  }
  std::vector<Value> arguments;
  for (int i = 0; i < op_def.input_arg_size(); ++i) {
    Value::List list;
    for (TensorValue& tensor : binding.inputs[i]) list.push_back(Value::Tensor(std::move(tensor)));
    const auto& arg = op_def.input_arg(i);
    const bool is_list = !arg.number_attr().empty() || !arg.type_list_attr().empty();
    arguments.push_back(is_list ? Value::MakeList(std::move(list)) : std::move(list[0]));
  }
  for (const auto& attr : op_def.attr()) {
    TF_ASSIGN_OR_RETURN(Value value, FromAttr(binding.def.attr().at(attr.name())));
    arguments.push_back(std::move(value));
  }
  const Frame inner{*callee, frame.depth + 1, absl::StrCat(frame.scope, node.symbol, "/")};
  auto outputs = RunOp(inner, std::move(arguments), tensorflow::AttrSlice(binding.def));
  if (!outputs.ok()) {
    return WithSuffix(outputs.status(),
                      absl::StrCat("; ", node.symbol, " is called at ", node.place));
  }
  Value::List results;
  for (int i = 0; i < op_def.output_arg_size(); ++i) {
    Value::List list;
    for (TensorValue& tensor : (*outputs)[i]) list.push_back(Value::Tensor(std::move(tensor)));
    const auto& arg = op_def.output_arg(i);
    const bool is_list = !arg.number_attr().empty() || !arg.type_list_attr().empty();
    results.push_back(is_list ? Value::MakeList(std::move(list)) : std::move(list[0]));
  }
  if (results.empty()) return Value();
  if (results.size() == 1) return std::move(results[0]);
  return Value::MakeList(std::move(results), SequenceKind::kTuple);
}

}  // namespace composite
