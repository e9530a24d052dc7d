#include "composite/runtime/instantiate/instantiated_function.h"

#include <atomic>
#include <utility>

#include "composite/runtime/base/op_traits.h"
#include "composite/runtime/base/stats.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/memory_types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using Runtime = InstantiatedFunction::Runtime;
using Library = InstantiatedFunction::Library;

// It refuses graphs with asynchronous ops, which the standard one runs.
constexpr char kFastExecutor[] = "SINGLE_THREADED_EXECUTOR";

// An inner function is instantiated when it is called, by the same executor; loops and branches in
// it are lowered to ops that the fast one refuses then, when nobody can choose another.
bool HasInnerControlFlow(const Library& library, const std::string& name) {
  for (const std::string& inner : library.ListFunctionNames()) {
    if (inner == name) continue;
    for (const tensorflow::NodeDef& node : library.Find(inner)->node_def()) {
      const Runs runs = TraitsOf(node.op()).runs;
      if (runs == Runs::kLoop || runs == Runs::kBranch) return true;
    }
  }
  return false;
}

// An error if an op of the function reads in the device's memory what lies in the host's, or the
// other way round. TensorFlow puts copies between such ops, as messages. The fast executor takes
// what it sends for the device's, wherever it lies: the process would end.
absl::Status CheckMemoryTypes(Runtime* runtime, const std::string& name, const Library& library) {
  const tensorflow::FunctionDef* function = library.Find(name);
  if (function == nullptr) return absl::NotFoundError(name);
  std::unique_ptr<tensorflow::FunctionBody> body;
  TF_RETURN_IF_ERROR(
      tensorflow::FunctionDefToBodyHelper(*function, tensorflow::AttrSlice(), &library, &body));
  const tensorflow::DeviceType type(runtime->device()->device_type());
  return tensorflow::ValidateMemoryTypes(type, body->graph);
}

std::atomic<int> alive{0};

absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> Instantiate(
    Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library,
    Runtime::InstantiateOptions options) {
  options.lib_def = library.get();
  options.target = runtime->device()->name();
  // So that an executor which cannot run this graph says so now.
  options.create_kernels_eagerly = true;
  Runtime::Handle handle = tensorflow::kInvalidHandle;
  const tensorflow::AttrValueMap no_attrs;
  absl::Status status =
      runtime->Instantiate(name, tensorflow::AttrSlice(&no_attrs), options, &handle);
  if (status.ok()) {
    return std::make_unique<const InstantiatedFunction>(runtime, std::move(library), handle);
  }
  if (handle != tensorflow::kInvalidHandle) runtime->ReleaseHandle(handle).IgnoreError();
  return status;
}

absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> InstantiateHere(
    Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library,
    const char* executor) {
  Runtime::InstantiateOptions options;
  options.allow_control_flow_sync_execution = true;
  options.executor_type = executor;
  return Instantiate(runtime, name, std::move(library), std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> InstantiatedFunction::MakeFast(
    Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library) {
  if (runtime->device()->device_type() != tensorflow::DEVICE_CPU) {
    TF_RETURN_IF_ERROR(CheckMemoryTypes(runtime, name, *library));
  }
  return InstantiateHere(runtime, name, std::move(library), kFastExecutor);
}

absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> InstantiatedFunction::Make(
    Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library) {
  if (HasInnerControlFlow(*library, name)) return MakeTelling(runtime, name, std::move(library));
  auto fast = MakeFast(runtime, name, library);
  return fast.ok() ? std::move(fast) : MakeTelling(runtime, name, std::move(library));
}

absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> InstantiatedFunction::MakeTelling(
    Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library) {
  return InstantiateHere(runtime, name, std::move(library), "");
}

absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> InstantiatedFunction::MakeSpread(
    Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library,
    const Placement& placement) {
  Runtime::InstantiateOptions options;
  options.is_multi_device_function = true;
  options.input_devices = placement.arguments;
  options.output_devices = placement.results;
  options.config_proto.set_allow_soft_placement(true);
  return Instantiate(runtime, name, std::move(library), std::move(options));
}

InstantiatedFunction::InstantiatedFunction(Runtime* runtime, std::shared_ptr<const Library> library,
                                           Runtime::Handle handle)
    : runtime_(runtime), library_(std::move(library)), handle_(handle) {
  Count(GlobalStats().instantiations);
  alive.fetch_add(1, std::memory_order_relaxed);
}

InstantiatedFunction::~InstantiatedFunction() {
  alive.fetch_sub(1, std::memory_order_relaxed);
  auto runtime = runtime_.GetNewRef();
  if (runtime != nullptr) runtime->ReleaseHandle(handle_).IgnoreError();
}

int InstantiatedFunction::count() { return alive.load(std::memory_order_relaxed); }

}  // namespace composite
