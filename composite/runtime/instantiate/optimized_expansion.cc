#include "composite/runtime/instantiate/optimized_expansion.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/instantiate/background.h"
#include "composite/runtime/instantiate/partition_passes.h"
#include "composite/runtime/instantiate/private_runtime.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tensorflow/core/grappler/optimizers/meta_optimizer.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace composite {
namespace {

using tensorflow::Device;
using tensorflow::DeviceAttributes;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::PartialTensorShape;
using tensorflow::RewriterConfig;

// Of the process; empty where nothing was chosen.
struct ChosenRewrites {
  static ChosenRewrites& Global() {
    static auto* chosen = new ChosenRewrites;
    return *chosen;
  }
  ForkMutex mu;
  absl::optional<RewriterConfig> options ABSL_GUARDED_BY(mu);
};

// What optimizers know a device by. Nothing runs on it.
class NamedDevice : public Device {
 public:
  explicit NamedDevice(const DeviceAttributes& attributes)
      : Device(tensorflow::Env::Default(), attributes) {}
  absl::Status Sync() override { return absl::OkStatus(); }
};

tensorflow::ConfigProto Config(const RewriterConfig& rewrites) {
  tensorflow::ConfigProto config;
  auto* options = config.mutable_graph_options()->mutable_rewrite_options();
  *options = rewrites;
  options->set_min_graph_nodes(-1);  // by hand these nodes would stand in a larger graph
  return config;
}

// The expansion's graph on a device, its arguments with their shapes.
absl::StatusOr<std::unique_ptr<Graph>> PlacedGraph(const tensorflow::FunctionBody& body,
                                                   absl::Span<const PartialTensorShape> shapes,
                                                   const FunctionLibraryDefinition& library,
                                                   const Device& device) {
  if (body.arg_nodes.size() != shapes.size()) {
    return absl::InternalError("an expansion has other arguments than its op");
  }
  auto graph = std::make_unique<Graph>(&library);
  graph->Copy(*body.graph);
  for (Node* node : graph->op_nodes()) {
    node->set_assigned_device_name(device.name());
    if (!node->IsArg()) continue;
    int index = 0;
    TF_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), "index", &index));
    node->AddAttr("_output_shapes", std::vector<PartialTensorShape>{shapes[index]});
  }
  return graph;
}

std::vector<std::string> NamesOf(absl::Span<Node* const> nodes) {
  std::vector<std::string> names;
  for (const Node* node : nodes) names.push_back(node->name());
  return names;
}

}  // namespace

void SetRewriterOptions(RewriterConfig options) {
  ChosenRewrites& chosen = ChosenRewrites::Global();
  absl::MutexLock lock(chosen.mu);
  chosen.options = std::move(options);
}

RewriterConfig RewriterOptions(tensorflow::FunctionLibraryRuntime* runtime) {
  ChosenRewrites& chosen = ChosenRewrites::Global();
  {
    absl::MutexLock lock(chosen.mu);
    if (chosen.options.has_value()) return *chosen.options;
  }
  const tensorflow::ConfigProto* config = runtime->config_proto();
  return config == nullptr ? RewriterConfig() : config->graph_options().rewrite_options();
}

absl::StatusOr<OptimizedFunction> Optimize(const Expansion& expansion,
                                           absl::Span<const PartialTensorShape> shapes,
                                           const RewriterConfig& rewrites,
                                           const DeviceAttributes& attributes) {
  TF_ASSIGN_OR_RETURN(const tensorflow::FunctionBody* body, expansion.Body());
  Device* cpu = PrivateRuntime()->device();  // which folds constants
  std::unique_ptr<NamedDevice> other;
  if (attributes.device_type() != tensorflow::DEVICE_CPU) {
    other = std::make_unique<NamedDevice>(attributes);
  }
  Device* device = other != nullptr ? other.get() : cpu;
  tensorflow::DeviceSet devices;
  devices.AddDevice(cpu);
  if (other != nullptr) devices.AddDevice(device);
  devices.set_client_device(cpu);
  auto library = std::make_shared<FunctionLibraryDefinition>(*expansion.library);
  TF_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, PlacedGraph(*body, shapes, *library, *device));
  std::vector<std::string> results = NamesOf(body->ret_nodes);
  std::vector<std::string> keep = NamesOf(body->arg_nodes);
  const std::vector<std::string> control = NamesOf(body->control_ret_nodes);
  keep.insert(keep.end(), control.begin(), control.end());
  tensorflow::grappler::GrapplerItem::OptimizationOptions options;
  options.allow_pruning_stateful_and_dataset_ops = false;
  if (!rewrites.disable_meta_optimizer()) {
    TF_RETURN_IF_ERROR(tensorflow::grappler::OptimizeGraph(results, keep, library.get(), devices,
                                                           cpu, Config(rewrites), expansion.name,
                                                           options, &graph));
  }
  TF_RETURN_IF_ERROR(RunPartitionPasses(device->name(), library.get(), &graph));
  OptimizedFunction optimized;
  optimized.name = absl::StrCat(expansion.name, "_optimized");
  tensorflow::FunctionDef fdef;
  TF_RETURN_IF_ERROR(tensorflow::GraphToFunctionDef(*graph, optimized.name, &fdef));
  for (tensorflow::NodeDef& node : *fdef.mutable_node_def()) node.clear_device();
  TF_RETURN_IF_ERROR(library->AddFunctionDef(fdef));
  optimized.library = std::move(library);
  return optimized;
}

std::shared_ptr<const OptimizedExpansion> OptimizedExpansion::Request(
    std::shared_ptr<const Expansion> expansion, std::vector<PartialTensorShape> shapes,
    RewriterConfig rewrites, DeviceAttributes device) {
  static auto* const mu = new ForkMutex;
  static auto* const known =
      new absl::flat_hash_map<std::string, std::weak_ptr<const OptimizedExpansion>>;
  const bool on_cpu = device.device_type() == tensorflow::DEVICE_CPU;
  std::string key = absl::StrCat(expansion->name, " on ", on_cpu ? "" : device.name());
  for (const PartialTensorShape& shape : shapes) absl::StrAppend(&key, ";", shape.DebugString());
  std::string options;
  if (tensorflow::SerializeToStringDeterministic(rewrites, &options)) {
    absl::StrAppend(&key, ";", options);
  }
  absl::MutexLock lock(*mu);
  auto& same = (*known)[key];
  if (auto found = same.lock()) return found;
  auto made = std::make_shared<OptimizedExpansion>();
  same = made;
  absl::erase_if(*known, [](const auto& one) { return one.second.expired(); });
  Background::Global().Schedule([made, expansion = std::move(expansion), shapes = std::move(shapes),
                                 rewrites = std::move(rewrites), device = std::move(device)] {
    made->function_ = Optimize(*expansion, shapes, rewrites, device);
    if (!made->function_.ok()) {
      VLOG(1) << expansion->name << " stays as it is: " << made->function_.status();
    }
    made->done_.store(true, std::memory_order_release);
  });
  return made;
}

}  // namespace composite
