// The part of Evaluator that chooses between branches.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/emit/condition.h"
#include "composite/runtime/emit/inner_function.h"
#include "composite/runtime/emit/join.h"
#include "composite/runtime/expand/evaluator.h"
#include "composite/runtime/graph/common_shape.h"
#include "composite/runtime/graph/not_yet.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

// What both branches give: the values, with holes where the If gives a tensor.
class Joined {
 public:
  Joined(InnerFunction* then, InnerFunction* otherwise) : sides_{then, otherwise} {}

  absl::Status Add(const Value& a, const Value& b) {
    if (!SameStructure(a, b)) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", Describe(a), " on one path and ", Describe(b),
                       " on another, and a tensor decides which: lists must have one length"));
    }
    Value::List first, second, parts;
    AppendParts(a, &first);
    AppendParts(b, &second);
    for (size_t i = 0; i < first.size(); ++i) {
      TF_ASSIGN_OR_RETURN(PartType type, Meet(first[i], second[i]));
      if (type.is_tensor) {
        TF_RETURN_IF_ERROR(AddTensor(first[i], second[i], type));
        parts.push_back(FromPart(TensorValue{nullptr, Last(), type.dtype, false, nullptr}, type));
      } else {
        parts.push_back(first[i]);
      }
    }
    const Value* next = parts.data();
    values_.push_back(WithParts(a, &next));
    return absl::OkStatus();
  }

  // The values, the holes filled.
  std::vector<Value> Filled(const std::vector<TensorValue>& tensors) const {
    std::vector<Value> filled;
    for (const Value& value : values_) {
      Value::List parts;
      AppendParts(value, &parts);
      for (Value& part : parts) {
        if (part.as_tensor() == nullptr || part.as_tensor()->node != nullptr) continue;
        const int index = part.as_tensor()->index;
        part = FromPart(tensors[index], types[index]);
      }
      const Value* next = parts.data();
      filled.push_back(WithParts(value, &next));
    }
    return filled;
  }

  std::vector<TensorValue> results[2];
  std::vector<PartType> types;
  std::vector<tensorflow::PartialTensorShape> shapes;
  std::vector<ListShape> lists;

 private:
  int Last() const { return static_cast<int>(types.size()) - 1; }

  // As a tensor of the branch: one from outside of it is captured.
  static absl::StatusOr<TensorValue> Inside(const Value& part, const PartType& type,
                                            const tensorflow::PartialTensorShape& other,
                                            InnerFunction* branch) {
    TF_ASSIGN_OR_RETURN(TensorValue tensor, ToPart(part, type, &branch->emitter, other));
    return branch->graph.Capture(tensor);
  }

  // The shape of what the other branch has where one has nothing yet. That one takes it, so it is
  // read.
  static tensorflow::PartialTensorShape ReadShape(const Value& part, InnerFunction* branch) {
    if (part.as_tensor() == nullptr) return tensorflow::PartialTensorShape(std::vector<int64_t>{});
    return branch->graph.Shape(*part.as_tensor());
  }

  absl::Status AddTensor(const Value& a, const Value& b, const PartType& type) {
    const Value* const parts[2] = {&a, &b};
    tensorflow::PartialTensorShape given[2];
    ListShape list[2];
    for (int i = 0; i < 2; ++i) {
      tensorflow::PartialTensorShape other;
      if (parts[i]->is_undefined()) other = ReadShape(*parts[1 - i], sides_[1 - i]);
      TF_ASSIGN_OR_RETURN(TensorValue tensor, Inside(*parts[i], type, other, sides_[i]));
      given[i] = sides_[i]->graph.Inferred(tensor);
      list[i] = sides_[i]->graph.List(tensor);
      results[i].push_back(std::move(tensor));
    }
    shapes.push_back(a.is_undefined()   ? given[1]
                     : b.is_undefined() ? given[0]
                                        : Common(given[0], given[1]));
    lists.push_back(Common(list[0], list[1]));
    types.push_back(type);
    return absl::OkStatus();
  }

  InnerFunction* sides_[2];
  std::vector<Value> values_;
};

tensorflow::NodeDef IfNode(const std::vector<TensorValue>& captures, const Joined& joined) {
  tensorflow::NodeDef def;
  def.set_op("If");
  auto& attrs = *def.mutable_attr();
  attrs["Tcond"].set_type(tensorflow::DT_BOOL);
  auto* inputs = attrs["Tin"].mutable_list();
  for (const TensorValue& tensor : captures) inputs->add_type(tensor.dtype);
  auto* outputs = attrs["Tout"].mutable_list();
  for (const PartType& type : joined.types) outputs->add_type(type.dtype);
  // Not the shapes: they follow from those of the inputs, and the expansion may serve others.
  attrs["output_shapes"].mutable_list();
  return def;
}

}  // namespace

absl::StatusOr<std::vector<Value>> Evaluator::RunInside(InnerFunction* function, const Frame& frame,
                                                        int region, std::vector<Value> arguments) {
  Emitter* const outer = std::exchange(emitter_, &function->emitter);
  auto results = RunRegion(frame, region, std::move(arguments));
  emitter_ = outer;
  return results;
}

absl::StatusOr<std::vector<Value>> Evaluator::RunIf(const Frame& frame, const ProgramNode& node,
                                                    std::vector<Value> inputs) {
  TF_ASSIGN_OR_RETURN(Condition condition, Decide(inputs[0], emitter_));
  inputs.erase(inputs.begin());
  if (!condition.known.has_value()) {
    return RunBoth(frame, node, condition.tensor, std::move(inputs));
  }
  return RunRegion(frame, node.regions[*condition.known ? 0 : 1], std::move(inputs));
}

absl::StatusOr<std::vector<Value>> Evaluator::RunBoth(const Frame& frame, const ProgramNode& node,
                                                      const TensorValue& condition,
                                                      std::vector<Value> inputs) {
  InnerFunction then(emitter_), otherwise(emitter_);
  InnerFunction* const sides[2] = {&then, &otherwise};
  std::vector<Value> values[2];
  for (int i = 0; i < 2; ++i) {
    auto results = RunInside(sides[i], frame, node.regions[i], inputs);
    if (IsRaised(results.status())) {
      // A branch that raises is an Assert beside the other one, which needs no If then.
      TF_RETURN_IF_ERROR(Assert(condition, /*raised_when=*/i == 0, results.status()));
      return RunRegion(frame, node.regions[1 - i], std::move(inputs));
    }
    if (!results.ok()) return results.status();
    values[i] = *std::move(results);
  }
  Joined joined(&then, &otherwise);
  for (size_t i = 0; i < values[0].size(); ++i) {
    absl::Status status = joined.Add(values[0][i], values[1][i]);
    if (!status.ok()) return WithPrefix(status, absl::StrCat(NameOf(node, i), " "));
  }
  const bool stateful = then.graph.is_stateful() || otherwise.graph.is_stateful();
  if (joined.types.empty() && !stateful) return joined.Filled({});
  const std::vector<TensorValue> captures = AllCaptures(sides);
  tensorflow::NodeDef def = IfNode(captures, joined);
  for (int i = 0; i < 2; ++i) {
    const char* branch = i == 0 ? "then" : "else";
    TF_ASSIGN_OR_RETURN((*def.mutable_attr())[absl::StrCat(branch, "_branch")],
                        FinishInner(absl::StrCat(frame.version.op_name, "_", branch), captures,
                                    joined.results[i], sides[i]));
  }
  std::vector<TensorValue> operands = {condition};
  operands.insert(operands.end(), captures.begin(), captures.end());
  emitter_->graph().SetContext(node.place, frame.scope);
  TF_ASSIGN_OR_RETURN(std::vector<TensorValue> outputs,
                      AddControlNode(std::move(def), operands, sides));
  for (size_t i = 0; i < outputs.size(); ++i) {
    TF_RETURN_IF_ERROR(emitter_->graph().SetInferred(outputs[i], joined.shapes[i]));
    emitter_->graph().SetList(outputs[i], joined.lists[i]);
  }
  return joined.Filled(outputs);
}

absl::Status Evaluator::Assert(const TensorValue& condition, bool raised_when,
                               const absl::Status& error) {
  Value holds = Value::Tensor(condition);
  if (raised_when) {
    TF_ASSIGN_OR_RETURN(holds, emitter_->Call("LogicalNot", {"x"}, {std::move(holds)}));
  }
  const Value message = Value::MakeList({Value::String(std::string(error.message()))});
  return emitter_->Call("Assert", {"condition", "data"}, {std::move(holds), message}).status();
}

}  // namespace composite
