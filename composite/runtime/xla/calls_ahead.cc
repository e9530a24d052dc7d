#include "composite/runtime/xla/calls_ahead.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/graph/not_yet.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/xla/kernel_call.h"
#include "composite/runtime/xla/kernel_choice.h"
#include "tensorflow/compiler/jit/shape_inference.h"
#include "tensorflow/compiler/tf2xla/xla_context.h"
#include "tensorflow/compiler/tf2xla/xla_expression.h"
#include "tensorflow/compiler/tf2xla/xla_resource.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/inline_function_utils.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::AttrSlice;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::InferredShape;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::XlaExpression;
using Shapes = std::vector<InferredShape>;

constexpr int kMostCalls = 10;  // of one function within another

InferredShape ShapeOf(const XlaExpression& value) {
  InferredShape known;
  if (value.kind() == XlaExpression::Kind::kConstant) {
    known.shape = value.constant_value()->shape();
  } else if (value.kind() == XlaExpression::Kind::kXlaOp) {
    const absl::StatusOr<tensorflow::TensorShape> shape = value.GetShape();
    if (shape.ok()) known.shape = *shape;
  } else if (value.kind() == XlaExpression::Kind::kResource) {
    known.shape = tensorflow::TensorShape();
    known.handle_type = value.resource()->type();
    known.handle_shape = value.resource()->shape();
  }
  return known;
}

// A function that a node runs, and which of the node's inputs is its first argument.
struct Run {
  std::string function;
  int first = 0;
};

std::vector<Run> RunsOf(const Node& node, const FunctionLibraryDefinition& library) {
  if (library.Contains(node.type_string())) return {{node.type_string()}};
  const Runs kind = TraitsOf(node.type_string()).runs;
  if (kind == Runs::kNothing) return {};
  std::vector<Run> runs;
  const int first = kind == Runs::kBranch ? 1 : 0;  // behind the condition
  for (const auto& [name, value] : node.attrs()) {
    if (value.has_func()) runs.push_back({value.func().name(), first});
    for (const auto& function : value.list().func()) runs.push_back({function.name(), first});
  }
  return runs;
}

class Asking {
 public:
  Asking(tensorflow::FunctionLibraryRuntime* runtime, const Options& process,
         Compilation* compilation)
      : runtime_(runtime),
        library_(*runtime->GetFunctionLibraryDefinition()),
        process_(process),
        compilation_(*compilation) {}

  // What is asked last is made first: nodes are taken from the end.
  absl::Status OfFunction(const std::string& name, const Shapes& arguments) {
    if (!compilation_.IsFirst(name)) return absl::OkStatus();
    auto record = library_.FindRecord(name);
    if (record == nullptr) return absl::OkStatus();
    const AttrSlice attrs(&record->fdef().attr());
    std::unique_ptr<tensorflow::FunctionBody> body;
    TF_RETURN_IF_ERROR(
        tensorflow::FunctionDefToBodyHelper(record->fdef(), attrs, &library_, &body));
    if (body->arg_nodes.size() != arguments.size()) return absl::OkStatus();
    std::map<int, InferredShape> by_index;
    for (size_t i = 0; i < arguments.size(); ++i) by_index[static_cast<int>(i)] = arguments[i];
    Inline(body->graph);
    tensorflow::GraphShapeInfo shapes;
    TF_RETURN_IF_ERROR(tensorflow::InferShapes(body->graph, by_index, &library_, &shapes));
    std::vector<Node*> order;
    tensorflow::GetPostOrder(*body->graph, &order);
    for (const Node* node : order) {
      if (node->IsOp()) TF_RETURN_IF_ERROR(OfNode(*node, InputsOf(*node, shapes)));
    }
    return absl::OkStatus();
  }

 private:
  // Puts what is called into the graph, as XLA does: no shapes are inferred through calls.
  // Walks through a graph begin at its source.
  void Inline(tensorflow::Graph* graph) const {
    tensorflow::ExpandInlineFunctionsOptions options;
    options.native_options.ignore_noinline = options.multi_device_options.ignore_noinline = true;
    for (int depth = 0; depth < kMostCalls; ++depth) {
      if (!tensorflow::ExpandInlineFunctions(runtime_, graph, options)) break;
    }
    tensorflow::FixupSourceAndSinkEdges(graph);
  }

  static Shapes InputsOf(const Node& node, const tensorflow::GraphShapeInfo& shapes) {
    Shapes inputs(node.num_inputs());
    for (const tensorflow::Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge()) continue;
      const auto known = shapes.find(edge->src()->name());
      if (known == shapes.end()) continue;
      const Shapes& outputs = known->second;
      const size_t output = edge->src_output();
      if (output < outputs.size()) inputs[edge->dst_input()] = outputs[output];
    }
    return inputs;
  }

  absl::Status OfNode(const Node& node, const Shapes& inputs) {
    if (Registry::Global().Contains(node.type_string()) || node.type_string() == kFunctionOp) {
      return OfCall(node, inputs);
    }
    for (const Run& run : RunsOf(node, library_)) {
      const auto first = inputs.begin() + std::min<size_t>(run.first, inputs.size());
      TF_RETURN_IF_ERROR(OfFunction(run.function, {first, inputs.end()}));
    }
    return absl::OkStatus();
  }

  absl::Status OfCall(const Node& node, const Shapes& inputs) {
    NodeDef call = node.def();
    TF_ASSIGN_OR_RETURN(auto renamed, LearnFunction(call, library_));
    if (renamed.has_value()) call = *std::move(renamed);
    const AttrSlice attrs(call);
    TF_ASSIGN_OR_RETURN(auto version, Registry::Global().Resolve(call.op(), attrs));
    std::vector<tensorflow::Tensor> constants(inputs.size());
    std::vector<const tensorflow::Tensor*> known(inputs.size(), nullptr);
    std::vector<InputFact> facts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int input = static_cast<int>(i);
      facts.push_back({node.input_type(input), inputs[i].shape, nullptr});
      if (IsConstant(node, input, &constants[i])) known[i] = &constants[i];
    }
    Signature signature;
    if (!SignatureOf(facts, known, &signature)) return absl::OkStatus();
    const auto expansion = Expand(version, call, known, &facts);
    if (!expansion.ok()) return absl::OkStatus();  // the compilation says why
    TF_ASSIGN_OR_RETURN(const Options own, NodeOptions(attrs));
    AskForXla({*version, attrs, signature, **expansion}, own.Or(process_));
    return absl::OkStatus();
  }

  static bool IsConstant(const Node& node, int input, tensorflow::Tensor* value) {
    const tensorflow::Edge* edge = nullptr;
    if (!node.input_edge(input, &edge).ok() || !edge->src()->IsConstant()) return false;
    const tensorflow::TensorProto* proto = nullptr;
    return tensorflow::TryGetNodeAttr(edge->src()->attrs(), "value", &proto) &&
           value->FromProto(*proto);
  }

  // As the compilation will have it: with loops where there can be loops, with values where it
  // needs them.
  static absl::StatusOr<std::shared_ptr<const Expansion>> Expand(
      const std::shared_ptr<const OpVersion>& version, const NodeDef& call,
      const std::vector<const tensorflow::Tensor*>& known, std::vector<InputFact>* facts) {
    NodeDef with_loops = call;
    (*with_loops.mutable_attr())[kLoopsAttr].set_b(true);
    for (const NodeDef* node : {static_cast<const NodeDef*>(&with_loops), &call}) {
      for (const bool with_values : {false, true}) {
        for (size_t i = 0; i < known.size(); ++i) {
          (*facts)[i].constant = with_values ? known[i] : nullptr;
        }
        auto expansion = GetExpansion(version, AttrSlice(*node), *facts);
        if (expansion.ok()) return expansion;
        if (!IsNotYet(expansion.status())) break;
      }
    }
    return absl::NotFoundError("the call has no expansion");
  }

  tensorflow::FunctionLibraryRuntime* const runtime_;
  const FunctionLibraryDefinition& library_;
  const Options process_;
  Compilation& compilation_;
};

}  // namespace

void AskForCalls(tensorflow::XlaOpKernelContext* context, Compilation* compilation) {
  // XLA's code has the name of its function, in front of the function's attributes.
  const absl::string_view of_code = context->builder()->name();
  const std::string name(of_code.substr(0, of_code.find('[')));
  Shapes arguments;
  for (const XlaExpression& argument : context->xla_context()->args()) {
    arguments.push_back(ShapeOf(argument));
  }
  const auto process = ProcessOptions();
  if (!process.ok()) return;  // the compilation says so
  const absl::Status status = Asking(context->compiler()->flib_runtime(), *process, compilation)
                                  .OfFunction(name, arguments);
  if (!status.ok())
    VLOG(1) << "Composite: not all kernels of " << name << " are asked for at once: " << status;
}

}  // namespace composite
