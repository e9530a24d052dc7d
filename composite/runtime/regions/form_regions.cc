#include "composite/runtime/regions/form_regions.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "composite/runtime/checking/broken_graph.h"
#include "composite/runtime/checking/graph_check.h"
#include "composite/runtime/checking/optimizer_reads.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/regions/cleanup.h"
#include "composite/runtime/regions/left_behind.h"
#include "composite/runtime/regions/partition.h"
#include "composite/runtime/regions/refused_nodes.h"
#include "composite/runtime/regions/region_function.h"
#include "composite/runtime/regions/region_node.h"
#include "composite/runtime/regions/region_options.h"
#include "composite/runtime/stacks/stack_updates.h"
#include "composite/runtime/variables/take_over.h"
#include "composite/runtime/variables/updates.h"
#include "composite/runtime/variables/uses.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

struct Region {
  std::vector<Node*> nodes;  // in topological order
  RegionFunction function;
  NodeDef call;  // what takes their place, without inputs
  LeftBehind left;
  std::vector<Node*> waits;  // for which the call waits, outside of all regions
};

NodeDef Call(const RegionFunction& region, std::string name, const std::string& device) {
  NodeDef call;
  call.set_op(kFunctionOp);
  call.set_name(std::move(name));
  call.set_device(device);
  auto& attrs = *call.mutable_attr();
  const std::string& function = region.function.signature().name();
  attrs[kFunctionAttr].mutable_func()->set_name(function);
  attrs[kProgramAttr].set_s(function);
  auto* in = attrs["Tin"].mutable_list();
  for (const Argument& argument : region.arguments) in->add_type(argument.dtype);
  auto* out = attrs["Tout"].mutable_list();
  for (const auto& [node, output] : region.results) out->add_type(node->output_type(output));
  attrs["Tconstants"].mutable_list();
  const Options& options = ThreadOptions();
  if (options.backend != Backend::kUnset) attrs[kBackendAttr].set_s(Name(options.backend));
  if (options.numerics != Numerics::kUnset) attrs[kNumericsAttr].set_s(Name(options.numerics));
  if (options.xla_wait != kXlaUnset) attrs[kXlaWaitAttr].set_s(XlaWaitText(options.xla_wait));
  return call;
}

// Has the calls know which results may lie in variables.
void MarkTakeOvers(const Graph& graph, std::vector<Region>* regions) {
  std::vector<GraphPart> parts;
  for (const Region& region : *regions) {
    const RegionFunction& function = region.function;
    GraphPart& part = parts.emplace_back(GraphPart{region.nodes, {}, function.results});
    for (const Argument& argument : function.arguments) {
      part.arguments.push_back(argument.is_variable ? NodeOutput() : argument.value);
    }
  }
  const std::vector<TakeOvers> found = TakeOversOf(graph, parts);
  for (size_t k = 0; k < regions->size(); ++k) {
    Region& region = (*regions)[k];
    region.waits = found[k].waits;
    if (!found[k].pairs.empty()) AddNodeAttr(kUpdatesAttr, found[k].pairs, &region.call);
  }
}

void AddCalls(const FunctionLibraryDefinition& library, Graph* graph,
              std::vector<Region>* regions) {
  VariableUses uses(library);
  for (Region& region : *regions) {
    const std::string& device = region.nodes[0]->requested_device();
    region.call = Call(region.function, graph->NewName("composite_region"), device);
    region.left = LeavesBehind(region.nodes, region.function, &uses, graph);
  }
  MarkTakeOvers(*graph, regions);
}

// Adds the nodes of a region that the compiler refused or that are denied; whether there are new
// ones.
bool AddRefused(const RegionFunction& region, const Selection& denied,
                absl::flat_hash_set<const Node*>* refused) {
  bool are_new = false;
  const std::string& function = region.function.signature().name();
  std::vector<std::string> names = RefusedNodes(function);
  for (std::string& name : denied.NodesOf(function)) names.push_back(std::move(name));
  for (const std::string& name : names) {
    // Of a composite's body, "n3/MatMul", the composite is refused.
    auto origin = region.origins.find(name.substr(0, name.find('/')));
    if (origin != region.origins.end()) are_new |= refused->insert(origin->second).second;
  }
  return are_new;
}

// The nodes that others will take the places of, see tensorflow/saving_forward.h.
absl::flat_hash_set<std::string> Forwards(const Graph& graph) {
  absl::flat_hash_set<std::string> names;
  for (const Node* node : graph.op_nodes()) {
    const tensorflow::AttrValue* forward = node->attrs().Find(kSavingForwardAttr);
    if (forward != nullptr) names.insert(forward->s());
  }
  return names;
}

// Adds what stays of the regions' loops; data for their nodes, `calls`, alone.
absl::Status AddLeftBehind(const std::vector<Region>& regions, const std::vector<Node*>& calls,
                           Graph* graph) {
  absl::flat_hash_map<const Node*, Node*> places;  // of loops
  for (const Region& region : regions) {
    for (Node* loop : region.left.loops) {
      TF_ASSIGN_OR_RETURN(places[loop], graph->AddNode(NoOpFor(*loop)));
    }
  }
  const auto place_of = [&](Node* node) {
    const auto place = places.find(node);
    return place == places.end() ? node : place->second;
  };
  for (size_t k = 0; k < regions.size(); ++k) {
    const LeftBehind& left = regions[k].left;
    std::vector<Node*> after;
    for (Node* loop : left.loops) {
      Node* place = after.emplace_back(places.at(loop));
      for (const Edge* edge : loop->out_edges()) {
        // Loops of regions wait for it below.
        if (edge->IsControlEdge() && !edge->dst()->IsSink() && places.count(edge->dst()) == 0) {
          graph->AddControlEdge(place, edge->dst());
        }
      }
    }
    for (const LeftBehind::Read& read : left.reads) {
      TF_ASSIGN_OR_RETURN(Node * node, graph->AddNode(read.node));
      graph->AddEdge(read.variable.first, read.variable.second, node, 0);
      graph->AddEdge(node, 0, calls[k], read.argument);
      for (Node* place : after) graph->AddControlEdge(node, place);
      for (Node* before : left.before) graph->AddControlEdge(place_of(before), node);
      for (Node* before : left.behind) graph->AddControlEdge(before, node);
    }
    for (Node* before : left.before) {
      for (Node* place : after) graph->AddControlEdge(place_of(before), place);
    }
    for (Node* before : left.behind) {
      if (!left.reads.empty()) break;  // they wait for it
      for (Node* place : after) graph->AddControlEdge(before, place);
    }
    for (Node* before : left.waits) graph->AddControlEdge(place_of(before), calls[k]);
  }
  return absl::OkStatus();
}

// Readies the graph for regions: updates of variables, see variables/updates.h, and of stacks, see
// stacks/stack_updates.h, and what it is freed of, see cleanup.h.
absl::Status Prepare(const tensorflow::FunctionDef& function,
                     const FunctionLibraryDefinition& library, const Joining& joining,
                     Graph* graph) {
  const auto may_update = [&](const Node& addition, const Node& operand) {
    const RegionRole role = RoleOf(operand);
    const bool is_computed = role == RegionRole::kComputes || role == RegionRole::kSums;
    return joining.writes_in_place && is_computed && joining.may_join(addition);
  };
  TF_RETURN_IF_ERROR(MakeUpdates(may_update, {library, joining.may_have_twice}, graph));
  if (joining.writes_in_place) TF_RETURN_IF_ERROR(MakeStackUpdates(graph));
  TF_RETURN_IF_ERROR(SplitShapes(graph));
  RemoveUnread(function, graph);
  return absl::OkStatus();
}

// The regions of the graph. One that cannot be a function is left out.
std::vector<Region> MakeRegions(const tensorflow::FunctionDef& function, const Selection& denied,
                                const Joining& joining, const FunctionLibraryDefinition& library,
                                Graph* graph) {
  const RegionLoops loops(*graph, library);
  absl::flat_hash_set<const Node*> refused;
  const absl::flat_hash_set<std::string> forwards = Forwards(*graph);
  const absl::flat_hash_set<std::string> awaited = Awaited(function);
  const auto may_be_inside = [&](const Node& node) {
    // A loop with state leaves a node of its name behind, see left_behind.h.
    const bool keeps_name = awaited.contains(node.name()) && !node.op_def().is_stateful();
    return !keeps_name && !refused.contains(&node) && !forwards.contains(node.name()) &&
           IsAllowed(node) && !denied.HasNode(node) && joining.may_join(node);
  };
  RegionLimits limits;
  limits.computing = std::max({limits.computing, denied.smaller_than(), LeastOps()});
  while (true) {
    std::vector<Region> regions;
    bool is_final = true;
    for (std::vector<Node*>& nodes : FindRegions(*graph, limits, loops, may_be_inside)) {
      const std::vector<Node*> views = TakeViews(&nodes);
      auto made = MakeRegionFunction(nodes, views, loops);
      if (!made.ok()) {
        VLOG(1) << "Composite: no region at " << nodes[0]->name() << ": " << made.status();
        continue;
      }
      is_final &= !AddRefused(*made, denied, &refused);
      regions.push_back({std::move(nodes), *std::move(made), NodeDef(), LeftBehind(), {}});
    }
    // With a node more outside, other nodes may be one region.
    if (is_final) {
      const auto stays_out = [&](const Region& region) {
        const std::string& name = region.function.function.signature().name();
        const auto& only = ThreadOnlyRegions();
        if (only.has_value() && !only->contains(name)) return true;
        if (joining.may_be != nullptr && !joining.may_be(region.function)) return true;
        return !IsAllowedRegion(name) || denied.HasRegion(name) || !HasFuel(name);
      };
      regions.erase(std::remove_if(regions.begin(), regions.end(), stays_out), regions.end());
      AddCalls(library, graph, &regions);
      return regions;
    }
  }
}

// The functions of regions and of their loops, in the order in which they use each other.
std::vector<const tensorflow::FunctionDef*> FunctionsOf(const std::vector<Region>& regions) {
  std::vector<const tensorflow::FunctionDef*> functions;
  for (const Region& region : regions) {
    for (const tensorflow::FunctionDef& loop : region.function.loops) functions.push_back(&loop);
    functions.push_back(&region.function.function);
  }
  return functions;
}

// Adds functions, checked, to a library; equal ones are one.
absl::Status AddFunctions(const std::vector<Region>& regions, FunctionLibraryDefinition* library) {
  const tensorflow::OpRegistrationData* known = nullptr;
  for (const tensorflow::FunctionDef* function : FunctionsOf(regions)) {
    if (library->LookUp(function->signature().name(), &known).ok()) continue;
    TF_RETURN_IF_ERROR(CheckFunction(*function, *library));
    TF_RETURN_IF_ERROR(library->AddFunctionDef(*function));
  }
  return absl::OkStatus();
}

// Puts the calls in the places of the regions.
absl::Status Replace(Graph* graph, const std::vector<Region>& regions) {
  // A region may read another one, made before or after it.
  std::vector<Node*> calls;
  absl::flat_hash_map<NodeOutput, NodeOutput> moved;
  for (const Region& region : regions) {
    TF_ASSIGN_OR_RETURN(Node * call, graph->AddNode(region.call));
    const std::vector<NodeOutput>& results = region.function.results;
    for (size_t i = 0; i < results.size(); ++i) moved[results[i]] = {call, static_cast<int>(i)};
    calls.push_back(call);
  }
  TF_RETURN_IF_ERROR(AddLeftBehind(regions, calls, graph));
  for (size_t k = 0; k < regions.size(); ++k) {
    for (Node* node : regions[k].waits) graph->AddControlEdge(node, calls[k]);
    const std::vector<Argument>& arguments = regions[k].function.arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].is_variable) continue;
      auto it = moved.find(arguments[i].value);
      const NodeOutput& from = it == moved.end() ? arguments[i].value : it->second;
      graph->AddEdge(from.first, from.second, calls[k], static_cast<int>(i));
    }
  }
  for (const auto& [before, after] : moved) {
    const std::vector<const Edge*> edges(before.first->out_edges().begin(),
                                         before.first->out_edges().end());
    for (const Edge* edge : edges) {
      if (edge->src_output() == before.second) MoveEdge(edge, after, graph);
    }
  }
  for (const Region& region : regions) {
    for (Node* node : region.nodes) graph->RemoveNode(node);
  }
  for (Node* call : calls) TF_RETURN_IF_ERROR(KeepOutputs(call, graph));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> AddRegions(const tensorflow::FunctionDef& function, const Selection& denied,
                               const Joining& joining, FunctionLibraryDefinition* library,
                               Graph* graph) {
  TF_RETURN_IF_ERROR(Prepare(function, *library, joining, graph));
  const std::vector<Region> regions = MakeRegions(function, denied, joining, *library, graph);
  TF_RETURN_IF_ERROR(AddFunctions(regions, library));
  for (const tensorflow::FunctionDef* made : FunctionsOf(regions)) {
    TF_RETURN_IF_ERROR(AddIfMissing(*made, graph->mutable_flib_def()));
  }
  TF_RETURN_IF_ERROR(Replace(graph, regions));
  TF_RETURN_IF_ERROR(Break(ThreadBreaking(), graph));
  TF_RETURN_IF_ERROR(CheckGraph(function, *graph, *library));
  return static_cast<int>(regions.size());
}

}  // namespace composite
