// The part of Evaluator that runs loops.
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/emit/builtins.h"
#include "composite/runtime/emit/condition.h"
#include "composite/runtime/emit/inner_function.h"
#include "composite/runtime/emit/operators.h"
#include "composite/runtime/expand/carried_values.h"
#include "composite/runtime/expand/evaluator.h"
#include "composite/runtime/expand/trip_count.h"
#include "composite/runtime/graph/not_yet.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {

using Tensors = std::vector<TensorValue>;

// One evaluation of condition and body: the two functions, their own parameters, what they give.
struct Trip {
  explicit Trip(Emitter* outer) : condition(outer), body(outer) {}

  InnerFunction condition, body;
  Tensors condition_parameters, body_parameters;
  TensorValue predicate;
  std::vector<Value> next;
};

namespace {

using tensorflow::PartialTensorShape;

// What a function of the loop takes before the variables: TensorFlow's gradient of a While counts
// the trips in the first, and reads the most that there may be from the second, -1 for any number.
constexpr int kCounters = 2;

// A loop is looked at until nothing changes. A part can change its type four times, a dim of its
// shape once.
constexpr int kRoundsForAPart = 16;

// Trips of a loop that is kept, see kLoopsAttr, which are unrolled all the same.
constexpr int64_t kMostUnrolled = 8;

absl::StatusOr<Tensors> AddCounters(InnerFunction* function) {
  Tensors counters;
  for (int i = 0; i < kCounters; ++i) {
    TF_ASSIGN_OR_RETURN(TensorValue counter,
                        function->graph.AddParameter(tensorflow::DT_INT32,
                                                     PartialTensorShape(std::vector<int64_t>{})));
    counters.push_back(std::move(counter));
  }
  return counters;
}

// What the counters start with.
absl::StatusOr<Tensors> Counters(Value max_iterations, Emitter* emitter) {
  if (max_iterations.as_tensor() != nullptr &&
      max_iterations.as_tensor()->dtype != tensorflow::DT_INT32) {
    TF_ASSIGN_OR_RETURN(
        max_iterations,
        emitter->Call("Cast", {"x", "DstT"}, {max_iterations, Value::Type(tensorflow::DT_INT32)}));
  }
  Tensors counters;
  for (const Value& value : {Value::Int(0), max_iterations}) {
    TF_ASSIGN_OR_RETURN(TensorValue counter, emitter->ToTensor(value, tensorflow::DT_INT32));
    counters.push_back(std::move(counter));
  }
  return counters;
}

// The whole shape decides what the loop's variables are: it is part of the expansion's key.
void ReadShape(const TensorValue& tensor, GraphBuilder* graph) {
  graph->Shape(tensor);
  if (tensor.dtype == tensorflow::DT_VARIANT) graph->ReadList(tensor);
}

void Append(const Tensors& more, Tensors* all) {
  all->insert(all->end(), more.begin(), more.end());
}

tensorflow::NodeDef WhileNode(const Tensors& operands, const CarriedValues& carried,
                              const Tensors& captures, GraphBuilder* graph) {
  tensorflow::NodeDef def;
  def.set_op("While");
  auto& attrs = *def.mutable_attr();
  auto* types = attrs["T"].mutable_list();
  for (const TensorValue& tensor : operands) types->add_type(tensor.dtype);
  attrs["parallel_iterations"].set_i(10);
  auto* shapes = attrs["output_shapes"].mutable_list();
  for (int i = 0; i < kCounters; ++i) shapes->add_shape();
  for (const PartialTensorShape& shape : carried.shapes()) shape.AsProto(shapes->add_shape());
  for (const TensorValue& tensor : captures) graph->Inferred(tensor).AsProto(shapes->add_shape());
  return def;
}

// TensorFlow's gradient of a While takes an argument that is among the results for one that no trip
// changes, wherever it is among them: one that goes on as another variable does so as a copy.
absl::Status CopyMoved(absl::Span<const TensorValue> parameters, Emitter* emitter,
                       Tensors* results) {
  for (size_t i = 0; i < results->size(); ++i) {
    TensorValue& result = (*results)[i];
    for (size_t k = 0; k < parameters.size(); ++k) {
      if (k == i || result.node != parameters[k].node) continue;
      TF_ASSIGN_OR_RETURN(Value copy,
                          emitter->Call("Identity", {"input"}, {Value::Tensor(result)}));
      result = *copy.as_tensor();
      break;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Value>> Evaluator::RunWhile(const Frame& frame, const ProgramNode& node,
                                                       std::vector<Value> inputs) {
  for (int64_t trip = 0;; ++trip) {
    TF_ASSIGN_OR_RETURN(absl::optional<bool> predicate, Predicate(frame, node, inputs));
    if (!predicate.has_value()) return RunLoop(frame, node, std::move(inputs));
    if (!*predicate) break;
    if (keeps_loops_ && trip == kMostUnrolled) {
      auto loop = RunLoop(frame, node, inputs);
      if (loop.ok()) return loop;  // else a trip needs what only one after the other knows
    }
    if (trip >= kMaxItems) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the loop is unrolled when the op is expanded, and does not end in ",
                       kMaxItems, " trips"));
    }
    TF_ASSIGN_OR_RETURN(std::vector<Value> next, RunRegion(frame, node.regions[1], inputs));
    std::move(next.begin(), next.end(), inputs.begin());
  }
  inputs.resize(node.results);
  return inputs;
}

// Evaluated aside: a loop on a tensor asks its condition in a function of its own.
absl::StatusOr<absl::optional<bool>> Evaluator::Predicate(const Frame& frame,
                                                          const ProgramNode& node,
                                                          const std::vector<Value>& inputs) {
  InnerFunction aside(emitter_);
  TF_ASSIGN_OR_RETURN(std::vector<Value> answer, RunInside(&aside, frame, node.regions[0], inputs));
  TF_ASSIGN_OR_RETURN(Condition condition, Decide(answer[0], &aside.emitter));
  if (condition.known.has_value() && aside.graph.is_stateful()) {
    TF_RETURN_IF_ERROR(RunRegion(frame, node.regions[0], inputs).status());
  }
  return condition.known;
}

// Evaluates a trip with the types and shapes found so far.
absl::Status Evaluator::RunTrip(const Frame& frame, const ProgramNode& node,
                                const std::vector<Value>& invariant, CarriedValues* carried,
                                Trip* trip) {
  for (const bool is_body : {false, true}) {
    InnerFunction& function = is_body ? trip->body : trip->condition;
    Tensors& parameters = is_body ? trip->body_parameters : trip->condition_parameters;
    TF_ASSIGN_OR_RETURN(parameters, AddCounters(&function));
    TF_ASSIGN_OR_RETURN(std::vector<Value> values, carried->Enter(&function));
    Append(carried->parameters(), &parameters);
    values.insert(values.end(), invariant.begin(), invariant.end());
    TF_ASSIGN_OR_RETURN(values,
                        RunInside(&function, frame, node.regions[is_body], std::move(values)));
    if (is_body) {
      trip->next = std::move(values);
      continue;
    }
    TF_ASSIGN_OR_RETURN(Condition condition, Decide(values[0], &function.emitter));
    if (condition.known.has_value()) {
      TF_ASSIGN_OR_RETURN(condition.tensor, function.emitter.ToTensor(Value::Bool(*condition.known),
                                                                      tensorflow::DT_BOOL));
    }
    trip->predicate = condition.tensor;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Value>> Evaluator::RunLoop(const Frame& frame, const ProgramNode& node,
                                                      std::vector<Value> inputs) {
  const std::vector<Value> invariant(inputs.begin() + node.results, inputs.end());
  inputs.resize(node.results);
  CarriedValues carried(std::move(inputs), emitter_);
  const int rounds = kRoundsForAPart * static_cast<int>(carried.parts() + 1);
  for (int round = 0; round < rounds; ++round) {
    Trip trip(emitter_);
    TF_RETURN_IF_ERROR(RunTrip(frame, node, invariant, &carried, &trip));
    bool wider = false;
    for (int i = 0; i < node.results; ++i) {
      auto one = carried.Widen(i, trip.next[i], &trip.body);
      if (!one.ok()) return WithPrefix(one.status(), absl::StrCat(NameOf(node, i), " "));
      wider |= *one;
    }
    if (!wider) return FinishLoop(frame, node, carried, &trip);
  }
  return absl::InternalError("the types of a loop's values do not settle");
}

absl::StatusOr<std::vector<Value>> Evaluator::FinishLoop(const Frame& frame,
                                                         const ProgramNode& node,
                                                         const CarriedValues& carried, Trip* trip) {
  InnerFunction* const functions[2] = {&trip->condition, &trip->body};
  GraphBuilder& graph = emitter_->graph();
  TF_ASSIGN_OR_RETURN(Tensors given, carried.Given(trip->next, &trip->body));
  TF_ASSIGN_OR_RETURN(Value counted, Binary("add", Value::Tensor(trip->body_parameters[0]),
                                            Value::Int(1), &trip->body.emitter));
  graph.SetContext(node.place, frame.scope);
  TF_ASSIGN_OR_RETURN(Tensors started, carried.Started(emitter_));
  const auto variable = [](const Tensors& all) {
    return absl::MakeConstSpan(all).subspan(kCounters);
  };
  const Value max_iterations = MaxIterations(
      trip->predicate,
      {variable(trip->condition_parameters), variable(trip->body_parameters), given, started},
      trip->condition.graph);
  TF_ASSIGN_OR_RETURN(Tensors operands, Counters(max_iterations, emitter_));
  Append(started, &operands);
  // Results that are outer tensors are captured, so this is asked when all results are there.
  for (TensorValue& tensor : given) {
    TF_ASSIGN_OR_RETURN(tensor, trip->body.graph.Capture(tensor));
  }
  TF_RETURN_IF_ERROR(CopyMoved(variable(trip->body_parameters), &trip->body.emitter, &given));
  TF_ASSIGN_OR_RETURN(trip->predicate, trip->condition.graph.Capture(trip->predicate));
  const Tensors captures = AllCaptures(functions);
  Append(captures, &operands);
  for (const TensorValue& tensor : operands) ReadShape(tensor, &graph);

  tensorflow::NodeDef def = WhileNode(operands, carried, captures, &graph);
  Append(captures, &trip->condition_parameters);
  Tensors results = {*counted.as_tensor(), trip->body_parameters[1]};
  Append(given, &results);
  Append(captures, &results);
  Append(captures, &trip->body_parameters);
  const std::string stem = frame.version.op_name;
  TF_ASSIGN_OR_RETURN((*def.mutable_attr())["cond"],
                      FinishInner(stem + "_condition", trip->condition_parameters,
                                  {trip->predicate}, &trip->condition));
  TF_ASSIGN_OR_RETURN((*def.mutable_attr())["body"],
                      FinishInner(stem + "_body", trip->body_parameters, results, &trip->body));
  TF_ASSIGN_OR_RETURN(Tensors outputs, AddControlNode(std::move(def), operands, functions));
  const auto first = outputs.begin() + kCounters;
  const Tensors variables(first, first + given.size());
  const std::vector<PartialTensorShape> shapes = carried.shapes();
  const std::vector<ListShape> lists = carried.lists();
  for (size_t i = 0; i < variables.size(); ++i) {
    TF_RETURN_IF_ERROR(graph.SetInferred(variables[i], shapes[i]));
    graph.SetList(variables[i], lists[i]);
  }
  return carried.Filled(variables);
}

}  // namespace composite
