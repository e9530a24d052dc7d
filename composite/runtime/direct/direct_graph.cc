#include "composite/runtime/direct/direct_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/op_traits.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/optimize_function_graph_utils.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tensorflow/core/grappler/optimizers/meta_optimizer.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::DataType;
using tensorflow::Edge;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::FunctionLibraryRuntime;
using tensorflow::Graph;
using tensorflow::Node;

// A graph keeps its constants as the function does: a model whose weights are constants would be
// in memory twice.
constexpr size_t kMostConstantBytes = size_t{16} << 20;

absl::Status Refused(absl::string_view why) { return absl::FailedPreconditionError(why); }

// As an eager call of a function does (KernelAndDeviceFunc of TF 2.21).
FunctionLibraryRuntime::InstantiateOptions OptionsFor(const tensorflow::FunctionDef& function,
                                                      const tensorflow::Device& device,
                                                      const tensorflow::ConfigProto& config) {
  FunctionLibraryRuntime::InstantiateOptions options;
  options.target = device.name();
  options.is_multi_device_function = true;
  options.input_devices.assign(function.signature().input_arg_size(), device.name());
  options.config_proto = config;
  options.config_proto.mutable_graph_options()
      ->mutable_optimizer_options()
      ->set_do_function_inlining(true);
  tensorflow::grappler::GrapplerItem::OptimizationOptions optimization;
  optimization.is_eager_mode = true;
  optimization.optimize_function_library = false;
  options.optimize_graph_fn = std::bind(
      tensorflow::grappler::OptimizeGraph, std::placeholders::_1, std::placeholders::_2,
      std::placeholders::_3, std::placeholders::_4, std::placeholders::_5, options.config_proto,
      function.signature().name(), optimization, std::placeholders::_6);
  return options;
}

// Of what has state.
bool OnlyReads(const Node& node) {
  for (const char* op :
       {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "LookupTableFindV2", "Assert"}) {
    if (node.type_string() == op) return true;
  }
  return false;
}

// Whether it is worth a thread of its own: nodes of composites and regions, products, and ops of
// which nothing is known. The elements of others are shared by threads anyway.
bool IsWork(const Node& node) {
  const OpTraits& traits = TraitsOf(node.type_string());
  const bool is_large = traits.work == Work::kSums || traits.work == Work::kUnknown;
  return node.IsOp() && is_large && !traits.structural && !OnlyReads(node);
}

size_t ConstantBytes(const Node& node) {
  const tensorflow::AttrValue* value = node.IsConstant() ? node.attrs().Find("value") : nullptr;
  return value == nullptr ? 0 : value->tensor().ByteSizeLong();
}

// A call that fails is made again by TensorFlow, so nothing may have been changed by then.
absl::Status CheckNodes(const Graph& graph) {
  size_t constants = 0;
  for (const Node* node : graph.op_nodes()) {
    if (node->op_def().is_stateful() && !node->IsArg() && !node->IsRetval() && !OnlyReads(*node)) {
      return Refused(absl::StrCat(node->type_string(), " (node ", node->name(), ") has state"));
    }
    constants += ConstantBytes(*node);
  }
  if (constants > kMostConstantBytes) return Refused("its constants are large");
  return absl::OkStatus();
}

// Whether no two nodes that work could run at the same time.
bool IsChain(const Graph& graph) {
  std::vector<Node*> order;
  GetReversePostOrder(graph, &order);
  std::vector<int> before(graph.num_node_ids(), 0);  // the most work on a path to a node
  int work = 0;
  int longest = 0;
  for (const Node* node : order) {
    int most = 0;
    for (const Edge* edge : node->in_edges()) most = std::max(most, before[edge->src()->id()]);
    const int own = IsWork(*node) ? 1 : 0;
    work += own;
    before[node->id()] = most + own;
    longest = std::max(longest, most + own);
  }
  return work == longest;
}

bool WaitsForNothing(const Node& node) {
  return std::all_of(node.in_edges().begin(), node.in_edges().end(), [](const Edge* edge) {
    return !edge->IsControlEdge() || edge->src()->IsSource();
  });
}

// The dtype of the variable whose handle an argument is, if nothing but reads takes it.
DataType OnlyReadAs(const Node& argument) {
  DataType dtype = tensorflow::DT_INVALID;
  for (const Edge* edge : argument.out_edges()) {
    const Node& reader = *edge->dst();
    if (edge->IsControlEdge()) continue;
    if (reader.type_string() != "ReadVariableOp" || !WaitsForNothing(reader)) {
      return tensorflow::DT_INVALID;
    }
    dtype = reader.output_type(0);
  }
  return dtype;
}

// Puts an argument that is a value in the place of a variable's handle and the reads of it.
absl::Status ReadInFront(Graph* graph, Node* argument, DataType dtype) {
  tensorflow::NodeDef def = argument->def();
  def.clear_attr();
  AddNodeAttr("T", dtype, &def);
  AddNodeAttr("index", argument->def().attr().at("index"), &def);
  TF_ASSIGN_OR_RETURN(Node * value, graph->AddNode(std::move(def)));
  value->set_assigned_device_name(argument->assigned_device_name());
  graph->AddControlEdge(graph->source_node(), value);
  std::vector<Node*> reads;
  for (const Edge* edge : argument->out_edges()) {
    if (!edge->IsControlEdge()) reads.push_back(edge->dst());
  }
  for (Node* read : reads) {
    for (const Edge* edge : read->out_edges()) {
      graph->AddEdge(value, edge->src_output(), edge->dst(), edge->dst_input());
    }
    graph->RemoveNode(read);
  }
  for (const Edge* edge : argument->out_edges()) graph->AddControlEdge(value, edge->dst());
  graph->RemoveNode(argument);
  return absl::OkStatus();
}

// Numbers them anew. Of those from `first_capture` on variables are read in front.
absl::StatusOr<std::vector<DirectArgument>> ArgumentsOf(Graph* graph, int first_capture) {
  std::map<int, Node*> nodes;
  for (Node* node : graph->op_nodes()) {
    int index = 0;
    if (!node->IsArg()) continue;
    TF_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "index", &index));
    nodes[index] = node;
  }
  std::vector<DirectArgument> arguments;
  for (const auto& [index, node] : nodes) {
    node->ClearAttr("index");
    node->AddAttr("index", static_cast<int>(arguments.size()));
    const DataType reads = index < first_capture ? tensorflow::DT_INVALID : OnlyReadAs(*node);
    arguments.push_back({index, reads});
    if (reads != tensorflow::DT_INVALID) TF_RETURN_IF_ERROR(ReadInFront(graph, node, reads));
  }
  return arguments;
}

}  // namespace

absl::StatusOr<DirectGraph> DirectGraphOf(FunctionLibraryRuntime* runtime,
                                          const tensorflow::FunctionDef& function,
                                          const FunctionLibraryDefinition& library,
                                          const tensorflow::ConfigProto& config, int arguments) {
  const std::string& name = function.signature().name();
  tensorflow::Device* const device = runtime->device();
  tensorflow::DeviceSet all;
  all.AddDevice(device);
  all.set_client_device(device);
  const FunctionLibraryRuntime::InstantiateOptions options = OptionsFor(function, *device, config);
  TF_ASSIGN_OR_RETURN(
      tensorflow::OptimizedFunctionGraphInfo info,
      tensorflow::OptimizeFunctionGraph(
          name, tensorflow::AttrSlice(&function.attr()), options, all, &library,
          /*composite_devices=*/{}, /*cpu_device=*/device, /*default_device=*/device,
          runtime->env(), tensorflow::OptimizedFunctionGraph::JIT));
  // Its own came with the graph, and points to where that was made.
  info.function_graph->mutable_flib_def()->set_default_registry(&info.lib_def);
  TF_ASSIGN_OR_RETURN(auto parts, tensorflow::PreprocessAndPartitionGraph(
                                      name, info, options, all, &library,
                                      /*composite_devices=*/{}, device, runtime->env()));
  if (parts->size() != 1) return Refused("it is in several parts");
  Graph* const graph = parts->begin()->second.get();
  TF_RETURN_IF_ERROR(CheckNodes(*graph));
  if (!IsChain(*graph)) return Refused("threads could share its work");
  DirectGraph direct;
  TF_ASSIGN_OR_RETURN(direct.arguments, ArgumentsOf(graph, arguments));
  direct.name = absl::StrCat(name, "_direct");
  const auto control_result = [&info](const Node* node) -> absl::optional<std::string> {
    const auto found = info.node_name_to_control_ret.find(node->name());
    if (found == info.node_name_to_control_ret.end()) return absl::nullopt;
    return found->second;
  };
  tensorflow::FunctionDef made;
  TF_RETURN_IF_ERROR(tensorflow::GraphToFunctionDef(*graph, direct.name, control_result, &made));
  TF_RETURN_IF_ERROR(info.lib_def.AddFunctionDef(made));
  direct.library = std::make_shared<const FunctionLibraryDefinition>(std::move(info.lib_def));
  return direct;
}

}  // namespace composite
