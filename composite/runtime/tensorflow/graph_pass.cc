// The graph pass: replaces composites by calls of their expansions where that verdict is final, so
// that grappler fuses them as it does hand-written ops. Everything else keeps its node, whose
// kernel decides at run time.
//
// Before placement and before functional ops are lowered (phase 10): an expansion inlined into an
// already lowered loop would mix frames. As PartitionedCall, not inlined: a Session may fetch or
// feed the node by its name. Function bodies are rewritten in place, since While, If and calls
// reach the graph only as names.
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/stats.h"
#include "composite/runtime/checking/broken_graph.h"
#include "composite/runtime/checking/graph_check.h"
#include "composite/runtime/checking/optimizer_reads.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/memory/inplace_ops.h"
#include "composite/runtime/portable/portable_calls.h"
#include "composite/runtime/program/function_digest.h"
#include "composite/runtime/program/function_versions.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/regions/prepared_under.h"
#include "composite/runtime/tensorflow/call_names.h"
#include "composite/runtime/tensorflow/composition.h"
#include "composite/runtime/tensorflow/final_call.h"
#include "composite/runtime/tensorflow/function_rewrite.h"
#include "composite/runtime/tensorflow/node_rewrite.h"
#include "composite/runtime/tensorflow/region_pass.h"
#include "composite/runtime/tensorflow/saving_forward.h"
#include "composite/runtime/tensorflow/stand_in.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::Edge;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using PassOptions = tensorflow::GraphOptimizationPassOptions;
using Expansions = std::vector<std::shared_ptr<const Expansion>>;

const Edge* OriginOf(const Edge* edge, const Graph& graph) {
  return Origin(edge, graph.num_nodes(), [](const Edge* from) -> absl::optional<const Edge*> {
    const Edge* before = nullptr;
    const bool passes = from->src()->IsIdentity() && from->src()->input_edge(0, &before).ok();
    return passes ? absl::make_optional(before) : absl::nullopt;
  });
}

std::vector<InputFact> FactsOf(const Graph& graph, const Node& node,
                               std::vector<std::unique_ptr<tensorflow::Tensor>>* constants) {
  std::vector<InputFact> facts(node.num_inputs());
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge()) continue;
    const int i = edge->dst_input();
    const Edge* from = OriginOf(edge, graph);
    const Node& source = *from->src();
    facts[i] = FactFromProducer(source.type_string(), source.attrs(), from->src_output(),
                                node.input_type(i), constants);
  }
  return facts;
}

// Only of resource variables: those of TensorFlow 1 are written to in place whoever else holds the
// buffer.
InputSources SourcesOf(const Graph& graph, const Node& node) {
  InputSources sources;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Edge* edge = nullptr;
    if (!node.input_edge(i, &edge).ok()) continue;
    sources.Add(i, OriginOf(edge, graph)->src()->type_string());
  }
  return sources;
}

// Puts `def` where `node` was; edges keep their order and places. The name of `node` stays.
absl::Status Replace(Graph* graph, Node* node, tensorflow::NodeDef def) {
  def.set_device(node->requested_device());
  TF_ASSIGN_OR_RETURN(Node * other, graph->AddNode(std::move(def)));
  for (const Edge* edge : node->in_edges()) {
    graph->AddEdge(edge->src(), edge->src_output(), other, edge->dst_input());
  }
  if (other->name() != node->name()) return PutInPlace(graph, other, node);
  for (const Edge* edge : node->out_edges()) {
    graph->AddEdge(other, edge->src_output(), edge->dst(), edge->dst_input());
  }
  graph->RemoveNode(node);
  return absl::OkStatus();
}

// A Session looks functions up in the graph's own library, a tf.function in options.flib_def.
const FunctionLibraryDefinition& LibraryOf(const PassOptions& options) {
  return options.flib_def != nullptr ? *options.flib_def : (*options.graph)->flib_def();
}

absl::Status AddMissing(const Expansions& used, FunctionLibraryDefinition* library) {
  for (const auto& expansion : used) {
    for (const std::string& name : expansion->library->ListFunctionNames()) {
      TF_RETURN_IF_ERROR(AddIfMissing(*expansion->library->Find(name), library));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Graph>> Changed(const PassOptions& options,
                                               absl::FunctionRef<absl::Status(Graph*)> change) {
  const tensorflow::FunctionDef none;
  TF_ASSIGN_OR_RETURN(auto graph, CopyOf(**options.graph));
  TF_RETURN_IF_ERROR(change(graph.get()));
  TF_RETURN_IF_ERROR(Break(ThreadBreaking(), graph.get()));
  TF_RETURN_IF_ERROR(
      CheckGraph(options.function_def != nullptr ? *options.function_def : none, *graph,
                 options.flib_def != nullptr ? *options.flib_def : graph->flib_def()));
  return graph;
}

// Has `change` change the graph; where TensorFlow could not run the result, the graph stays
// `without` it.
void ChangeGraph(const PassOptions& options, absl::string_view without,
                 absl::FunctionRef<absl::Status(Graph*)> change) {
  auto changed = Changed(options, change);
  if (changed.ok()) {
    *options.graph = *std::move(changed);
  } else {
    NoteInvalid(options.function_def != nullptr ? options.function_def->signature().name() : "",
                without, changed.status());
  }
}

// Puts what a function became in its place; where TensorFlow could not run that, the function stays
// `without` it. Whether it is in place.
absl::StatusOr<bool> ChangeFunction(tensorflow::FunctionDef changed, absl::string_view without,
                                    FunctionLibraryDefinition* library) {
  absl::Status status = Break(ThreadBreaking(), &changed);
  if (status.ok()) status = CheckFunction(changed, *library);
  const std::string& name = changed.signature().name();
  if (!status.ok()) {
    NoteInvalid(name, without, status);
    return false;
  }
  TF_RETURN_IF_ERROR(library->ReplaceFunction(name, changed));
  return true;
}

constexpr char kExpansions[] = "expansions in the places of composites";

absl::StatusOr<Expansions> ReplaceNodes(const RewriteOptions& rewriting, Graph* graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph->op_nodes()) nodes.push_back(node);
  Expansions used;
  absl::optional<CallNames> names;
  for (Node* node : nodes) {
    std::vector<std::unique_ptr<tensorflow::Tensor>> constants;
    auto rewrite = RewriteNode(
        node->def(), rewriting,
        [&](const tensorflow::NodeDef&) { return FactsOf(*graph, *node, &constants); },
        [&](const tensorflow::NodeDef&) { return SourcesOf(*graph, *node); });
    if (!rewrite) continue;
    const tensorflow::NodeDef& composite = rewrite->composite;
    if (rewrite->expansion != nullptr) {
      if (!names) names.emplace(*graph);
      tensorflow::NodeDef call = CallNode(composite, *rewrite->expansion);
      call.set_name(names->Take(node->name(), *rewrite->expansion));
      TF_RETURN_IF_ERROR(Replace(graph, node, std::move(call)));
      used.push_back(std::move(rewrite->expansion));
    } else if (rewrite->is_composition) {
      TF_RETURN_IF_ERROR(Replace(graph, node, composite));
    } else if (rewrite->is_stamped) {
      for (const char* name : {kConstantsAttr, kVariablesAttr, kArgumentsAttr}) {
        auto stamp = composite.attr().find(name);
        if (stamp != composite.attr().end()) node->AddAttr(name, stamp->second);
      }
    }
  }
  return used;
}

void RewriteGraph(const PassOptions& options, const Devices& devices) {
  const tensorflow::FunctionDef* function = options.function_def;  // null for a session's graph
  RewriteOptions rewriting;
  rewriting.compositions =
      Registry::Global().has_replacements() && (function == nullptr || !KeepsTfOps(*function));
  if (function != nullptr && IsEagerWrapper(*function)) rewriting.context = NodeContext::kEager;
  rewriting.devices = devices;
  const bool may_change = absl::c_any_of((*options.graph)->op_nodes(), [&](const Node* node) {
    return MayRewrite(node->type_string(), rewriting);
  });
  if (!may_change) return;
  ChangeGraph(options, kExpansions, [&](Graph* graph) -> absl::Status {
    TF_RETURN_IF_ERROR(MergeSavingForwards(graph));
    TF_ASSIGN_OR_RETURN(const Expansions used, ReplaceNodes(rewriting, graph));
    if (options.flib_def != nullptr) TF_RETURN_IF_ERROR(AddMissing(used, options.flib_def));
    return AddMissing(used, graph->mutable_flib_def());
  });
}

absl::Status RewriteLibrary(const PassOptions& options, const Devices& devices) {
  FunctionLibraryDefinition* library = options.flib_def;
  const bool replace = Registry::Global().has_replacements();
  const absl::flat_hash_set<std::string> of_xla = FunctionsOfXla(*library);
  for (const std::string& name : library->ListFunctionNames()) {
    // A region's name says what it computes: marks and calls would make it another function.
    if (absl::StartsWith(name, kRegionPrefix)) continue;
    auto record = library->FindRecord(name);
    if (record == nullptr) continue;
    TF_ASSIGN_OR_RETURN(auto learned, LearnFunctions(*library, record->fdef()));
    const tensorflow::FunctionDef& function = learned.has_value() ? *learned : record->fdef();
    // The wrapper of an eager call is rewritten when it is instantiated itself.
    const bool stays = KeepsTfOps(function) || IsEagerWrapper(function) || of_xla.contains(name);
    RewriteOptions rewriting;
    rewriting.compositions = replace && !stays;
    rewriting.of_xla = of_xla.contains(name);
    rewriting.devices = devices;
    Expansions used;
    auto rewritten = RewriteFunction(function, rewriting, &used);
    bool is_done = false;
    if (rewritten.has_value()) {
      TF_RETURN_IF_ERROR(AddMissing(used, library));
      TF_RETURN_IF_ERROR(AddMissing(used, (*options.graph)->mutable_flib_def()));
      TF_ASSIGN_OR_RETURN(is_done, ChangeFunction(*std::move(rewritten), kExpansions, library));
    }
    if (!is_done && learned.has_value()) {
      TF_RETURN_IF_ERROR(library->ReplaceFunction(name, *learned));
    }
  }
  return absl::OkStatus();
}

// Has composites be nodes again where a portable model calls functions in their places.
absl::Status RestoreNodes(const PassOptions& options) {
  constexpr char kComposites[] = "composites in the places of a portable model's calls";
  PortableCalls calls(LibraryOf(options));
  std::vector<std::pair<std::string, tensorflow::NodeDef>> nodes;
  for (Node* node : (*options.graph)->op_nodes()) {
    if (auto restored = calls.NodeOf(node->def())) {
      nodes.emplace_back(node->name(), *std::move(restored));
    }
  }
  std::vector<tensorflow::FunctionDef> functions;
  if (options.flib_def != nullptr) {
    for (const std::string& name : options.flib_def->ListFunctionNames()) {
      auto record = options.flib_def->FindRecord(name);
      if (record == nullptr) continue;
      auto restored = calls.Restored(record->fdef());
      if (restored.has_value()) functions.push_back(*std::move(restored));
    }
  }
  if (!nodes.empty()) {
    ChangeGraph(options, kComposites, [&](Graph* graph) -> absl::Status {
      const auto named = graph->BuildNodeNameIndex();
      for (auto& [name, restored] : nodes) {
        TF_RETURN_IF_ERROR(Replace(graph, named.at(name), std::move(restored)));
      }
      return absl::OkStatus();
    });
  }
  for (tensorflow::FunctionDef& function : functions) {
    TF_RETURN_IF_ERROR(ChangeFunction(std::move(function), kComposites, options.flib_def).status());
  }
  return absl::OkStatus();
}

// Ops of ours, also those that call functions of TVM's libraries.
bool IsOurs(const std::string& op) {
  return Registry::Global().Contains(op) || absl::EndsWith(op, "TvmCall");
}

// Has TensorFlow's optimizer read the outputs of nodes with several as the graph does.
absl::Status KeepOutputsOfNodes(const PassOptions& options) {
  constexpr char kKept[] = "nodes that keep the outputs of composites apart";
  if (AreOutputsReadElsewhere(&IsOurs, **options.graph)) {
    ChangeGraph(options, kKept, [](Graph* graph) { return KeepOutputs(&IsOurs, graph); });
  }
  if (options.flib_def == nullptr) return absl::OkStatus();
  for (const std::string& name : options.flib_def->ListFunctionNames()) {
    if (absl::StartsWith(name, kRegionPrefix)) continue;  // its name says what it has
    auto record = options.flib_def->FindRecord(name);
    if (record == nullptr) continue;
    auto kept = WithKeptOutputs(record->fdef(), &IsOurs);
    if (!kept.has_value()) continue;
    TF_RETURN_IF_ERROR(ChangeFunction(*std::move(kept), kKept, options.flib_def).status());
  }
  return absl::OkStatus();
}

class CompositePass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const PassOptions& options) override {
    if (options.graph == nullptr) return absl::OkStatus();
    NoteInplaceOps(**options.graph, LibraryOf(options));
    TF_RETURN_IF_ERROR(RestoreNodes(options));
    const Devices devices{options.device_set, options.default_function_device};
    const PreparedUnder choices(options.function_def);
    TF_ASSIGN_OR_RETURN(const int64_t regions, AddRegions(options, devices));
    TF_RETURN_IF_ERROR(KeepOutputsOfNodes(options));
    TF_RETURN_IF_ERROR(LearnFunctions(LibraryOf(options), options.graph->get()));
    // The first regions of a process may all be in the library, where nothing has learned them.
    if (regions == 0 && Registry::Global().empty()) return absl::OkStatus();
    RewriteGraph(options, devices);
    return options.flib_def == nullptr ? absl::OkStatus() : RewriteLibrary(options, devices);
  }
};

REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::PRE_PLACEMENT, 5, CompositePass);

}  // namespace
}  // namespace composite
