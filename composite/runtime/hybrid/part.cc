#include "composite/runtime/hybrid/part.h"

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace composite {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::Tensor;
using tensorflow::TensorInfo;
using Values = google::protobuf::Map<std::string, TensorInfo>;

constexpr char kSignature[] = "call";

const tensorflow::OpDef* FindOp(const std::string& op) {
  const tensorflow::OpRegistrationData* found = nullptr;
  return tensorflow::OpRegistry::Global()->LookUp(op, &found).ok() ? &found->op_def : nullptr;
}

absl::Status CheckOps(const GraphDef& graph) {
  std::set<std::string> own, unknown;
  for (const auto& function : graph.library().function()) own.insert(function.signature().name());
  const auto check = [&](const auto& nodes) {
    for (const NodeDef& node : nodes) {
      if (own.count(node.op()) == 0 && FindOp(node.op()) == nullptr) unknown.insert(node.op());
    }
  };
  check(graph.node());
  for (const auto& function : graph.library().function()) check(function.node_def());
  if (unknown.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the module runs ", absl::StrJoin(unknown, ", "),
      " in TensorFlow, and this process has no such op: load the library that defines it, by "
      "composite_load_library or TF_LoadLibrary, in Python by composite.load or "
      "tf.load_op_library"));
}

// Null where the numbers have a gap.
const TensorInfo* Numbered(const Values& values, int number) {
  const auto found = values.find(std::to_string(number));
  return found == values.end() ? nullptr : &found->second;
}

// Placeholders of known shapes let TensorFlow's optimizers know more.
void StateShapes(const Values& inputs, GraphDef* graph) {
  std::map<std::string, const TensorInfo*> by_name;
  for (const auto& [number, value] : inputs) by_name[value.name()] = &value;
  for (NodeDef& node : *graph->mutable_node()) {
    const auto found = by_name.find(absl::StrCat(node.name(), ":0"));
    if (found == by_name.end()) continue;
    *(*node.mutable_attr())["shape"].mutable_shape() = found->second->tensor_shape();
  }
}

// Nodes of several parts are in the graph of one session.
void PrefixNames(const std::string& prefix, tensorflow::MetaGraphDef* part) {
  for (NodeDef& node : *part->mutable_graph_def()->mutable_node()) {
    node.set_name(prefix + node.name());
    for (std::string& input : *node.mutable_input()) {
      input.insert(input[0] == '^' ? 1 : 0, prefix);
    }
  }
  auto& signature = (*part->mutable_signature_def())[kSignature];
  for (Values* values : {signature.mutable_inputs(), signature.mutable_outputs()}) {
    for (auto& [number, value] : *values) value.set_name(prefix + value.name());
  }
}

// A session takes no handle that it is fed but those of tensors that it keeps: has it keep the
// handles that a part returns.
void KeepHandles(tensorflow::MetaGraphDef* part) {
  auto& signature = (*part->mutable_signature_def())[kSignature];
  for (auto& [number, value] : *signature.mutable_outputs()) {
    if (value.dtype() != tensorflow::DT_RESOURCE) continue;
    NodeDef* const keep = part->mutable_graph_def()->add_node();
    keep->set_op("GetSessionHandleV2");
    keep->set_name(absl::StrCat("composite_kept_", number));
    keep->add_input(value.name());
    (*keep->mutable_attr())["T"].set_type(tensorflow::DT_RESOURCE);
    value.set_name(absl::StrCat(keep->name(), ":0"));
  }
}

}  // namespace

absl::StatusOr<HybridSession> NewHybridSession() {
  tensorflow::SessionOptions options;
  (*options.config.mutable_device_count())["GPU"] = 0;
  options.config.set_allow_soft_placement(true);
  options.config.mutable_experimental()->set_disable_optimize_for_static_graph(true);  // extended
  tensorflow::Session* made = nullptr;
  TF_RETURN_IF_ERROR(tensorflow::NewSession(options, &made));
  return HybridSession(made, [](tensorflow::Session* session) {
    session->Close().IgnoreError();
    delete session;
  });
}

absl::StatusOr<std::unique_ptr<HybridPart>> HybridPart::Make(absl::string_view content,
                                                             absl::string_view name,
                                                             Handles handles,
                                                             HybridSession session) {
  tensorflow::MetaGraphDef parsed;
  const auto no_graph = absl::InvalidArgumentError("a part of the module is no graph");
  if (!parsed.ParseFromArray(content.data(), static_cast<int>(content.size()))) return no_graph;
  GraphDef& graph = *parsed.mutable_graph_def();
  TF_RETURN_IF_ERROR(CheckOps(graph));
  TF_ASSIGN_OR_RETURN(std::unique_ptr<AssetFolder> files, AssetFolder::Write(&graph));
  if (handles == Handles::kKept) KeepHandles(&parsed);
  PrefixNames(absl::StrCat(name, "/"), &parsed);
  const auto& signature = (*parsed.mutable_signature_def())[kSignature];

  tensorflow::CallableOptions call;
  for (int i = 0; i < static_cast<int>(signature.inputs_size()); ++i) {
    const TensorInfo* input = Numbered(signature.inputs(), i);
    if (input == nullptr) return no_graph;
    call.add_feed(input->name());
  }
  for (int i = 0; i < static_cast<int>(signature.outputs_size()); ++i) {
    const TensorInfo* output = Numbered(signature.outputs(), i);
    if (output == nullptr) return no_graph;
    call.add_fetch(output->name());
  }
  for (const NodeDef& node : graph.node()) {  // what is run for its effects, too
    const tensorflow::OpDef* op = FindOp(node.op());
    if (op == nullptr || op->is_stateful()) call.add_target(node.name());
  }
  StateShapes(signature.inputs(), &graph);
  call.mutable_run_options()->set_inter_op_thread_pool(-1);  // on the thread of its caller

  TF_RETURN_IF_ERROR(session->Extend(std::move(graph)));
  tensorflow::Session::CallableHandle function;
  TF_RETURN_IF_ERROR(session->MakeCallable(call, &function));
  return std::unique_ptr<HybridPart>(
      new HybridPart(std::move(session), function, std::move(files)));
}

HybridPart::~HybridPart() { session_->ReleaseCallable(function_).IgnoreError(); }

absl::StatusOr<std::vector<Tensor>> HybridPart::Run(const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(session_->RunCallable(function_, inputs, &outputs, /*run_metadata=*/nullptr));
  return outputs;
}

}  // namespace composite
