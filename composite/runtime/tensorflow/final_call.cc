#include "composite/runtime/tensorflow/final_call.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "composite/runtime/expand/expand.h"
#include "composite/runtime/kernels/decide.h"
#include "composite/runtime/kernels/node_groups.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/node_attrs.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/run/composite_node.h"
#include "composite/runtime/run/gpu_device.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace composite {

using tensorflow::AttrSlice;
using tensorflow::AttrValue;
using tensorflow::NodeDef;
using tensorflow::PartialTensorShape;

namespace {

absl::optional<Signature> KnownSignature(absl::Span<const InputFact> facts) {
  Signature call;
  for (const InputFact& fact : facts) {
    if (!fact.shape.IsFullyDefined()) return absl::nullopt;
    call.ranks.push_back(fact.shape.dims());
    for (int i = 0; i < fact.shape.dims(); ++i) call.dims.push_back(fact.shape.dim_size(i));
    if (fact.constant != nullptr) {
      call.NoteValue(static_cast<int>(call.ranks.size()) - 1, *fact.constant);
    }
  }
  return call;
}

bool RunsItsExpansionForGood(const OpVersion& version, AttrSlice attrs,
                             absl::Span<const InputFact> facts, const Device& device) {
  const absl::StatusOr<Options> own = NodeOptions(attrs);
  const absl::StatusOr<Options> process = ProcessOptions();
  // Wrong options are an error, and the node's kernel reports it.
  if (!own.ok() || !process.ok()) return false;
  const Options options = own->Or(*process);
  GroupSnapshots snapshots(version, attrs, device, options.invariant(), KnownSignature(facts));
  const bool measuring = attrs.Find(kUncountedAttr) != nullptr;
  const Caller caller = CallerOf(version, NodeDtypes(version, attrs), measuring);
  return IsReplaced(Decide(snapshots, caller, options, device), snapshots);
}

// Whether it has threads to compute on: the devices of other processes have none here.
bool IsOfThisProcess(const tensorflow::Device& device) { return device.has_eigen_cpu_device(); }

}  // namespace

Device PlacedOn(const std::string& requested, const Devices& devices) {
  tensorflow::DeviceNameUtils::ParsedName name;
  if (devices.all == nullptr || !tensorflow::DeviceNameUtils::ParseFullName(requested, &name)) {
    return HostCpu();
  }
  const tensorflow::Device* chosen = nullptr;
  if (devices.of_function != nullptr && tensorflow::DeviceNameUtils::IsCompleteSpecification(
                                            name, devices.of_function->parsed_name())) {
    chosen = devices.of_function;
  }
  for (const auto& [device, priority] : devices.all->prioritized_devices()) {
    if (chosen != nullptr) break;
    const bool runs_composites = device->device_type() == tensorflow::DEVICE_CPU ||
                                 device->device_type() == tensorflow::DEVICE_GPU;
    if (runs_composites &&
        tensorflow::DeviceNameUtils::IsCompleteSpecification(name, device->parsed_name())) {
      chosen = device;
    }
  }
  if (chosen == nullptr) return HostCpu();
  return IsOfThisProcess(*chosen) ? DeviceOf(chosen->device_type(), *chosen)
                                  : Device{Device::kOther, 0};
}

bool AreHostCpus(const Devices& devices) {
  if (devices.all == nullptr) return false;
  return absl::c_all_of(devices.all->devices(), [](const tensorflow::Device* device) {
    return device->device_type() == tensorflow::DEVICE_CPU && IsOfThisProcess(*device);
  });
}

std::shared_ptr<const Expansion> FinalExpansion(const NodeDef& def, std::vector<InputFact> facts,
                                                const Device& device) {
  // An eager op comes here as a function of one node, which the eager context keeps for good. It
  // has no stamp: its kernel follows redefinitions and the thread's options, a call would not.
  if (AttrSlice(def).Find(kProgramAttr) == nullptr) return nullptr;
  if (AttrSlice(def).Find(kEagerAttr) != nullptr) return nullptr;
  auto version = Registry::Global().Resolve(def.op(), AttrSlice(def));
  if (!version.ok()) return nullptr;
  if (!RunsItsExpansionForGood(**version, AttrSlice(def), facts, device)) return nullptr;
  auto expansion = GetExpansion(*version, AttrSlice(def), facts);
  if (expansion.ok()) return *std::move(expansion);
  VLOG(1) << "Composite " << def.name() << " keeps its node: " << expansion.status();
  return nullptr;
}

NodeDef CallNode(const NodeDef& def, const Expansion& expansion) {
  NodeDef call;
  call.set_name(def.name());
  call.set_op(expansion.fdef.signature().is_stateful() ? "StatefulPartitionedCall"
                                                       : "PartitionedCall");
  call.set_device(def.device());
  *call.mutable_input() = def.input();
  *call.mutable_experimental_debug_info() = def.experimental_debug_info();
  auto& attrs = *call.mutable_attr();
  for (const auto& [name, value] : def.attr()) {
    const bool ours = absl::StartsWith(name, "_composite_");
    if (absl::StartsWith(name, "_") && !ours) attrs[name] = value;
  }
  auto* in = attrs["Tin"].mutable_list();
  for (const auto& arg : expansion.fdef.signature().input_arg()) in->add_type(arg.type());
  auto* out = attrs["Tout"].mutable_list();
  for (const auto& arg : expansion.fdef.signature().output_arg()) out->add_type(arg.type());
  attrs["f"].mutable_func()->set_name(expansion.name);
  for (const char* name : {"config", "config_proto", "executor_type"}) attrs[name].set_s("");
  return call;
}

InputFact FactFromProducer(const std::string& op, AttrSlice attrs, int output,
                           tensorflow::DataType dtype,
                           std::vector<std::unique_ptr<tensorflow::Tensor>>* constants) {
  InputFact fact{dtype, PartialTensorShape(), nullptr};
  if (const AttrValue* value = attrs.Find("value"); op == "Const" && value != nullptr) {
    auto tensor = std::make_unique<tensorflow::Tensor>();
    if (!tensor->FromProto(value->tensor())) return fact;
    fact.shape = PartialTensorShape(tensor->shape().dim_sizes());
    fact.constant = tensor.get();
    constants->push_back(std::move(tensor));
    return fact;
  }
  const AttrValue* shapes = attrs.Find("_output_shapes");
  if (shapes == nullptr || output >= shapes->list().shape_size()) return fact;
  PartialTensorShape shape;
  if (PartialTensorShape::BuildPartialTensorShape(shapes->list().shape(output), &shape).ok()) {
    fact.shape = shape;
  }
  return fact;
}

}  // namespace composite
