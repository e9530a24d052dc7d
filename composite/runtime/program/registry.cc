#include "composite/runtime/program/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/expand/reachable.h"
#include "composite/runtime/run/op_kernel.h"
#include "composite/runtime/tensorflow/composition.h"
#include "composite/runtime/tensorflow/function_op.h"
#include "composite/runtime/tensorflow/shape_function.h"
#include "composite/runtime/tensorflow/xla_constants.h"
#include "composite/runtime/tensorflow/xla_kernel.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::OpDef;
using tensorflow::OpRegistrationData;
using tensorflow::OpRegistry;

std::string Where(const OpVersion& version) {
  if (version.program.module.empty()) return version.place;
  return absl::StrCat(version.place, " (module ", version.program.module, ")");
}

// Everything that a caller or a saved graph can see of an op; not its documentation.
bool SameInterface(OpDef a, OpDef b) {
  tensorflow::RemoveDescriptionsFromOpDef(&a);
  tensorflow::RemoveDescriptionsFromOpDef(&b);
  return tensorflow::OpDefEqual(a, b);
}

bool SameOrigin(const OpVersion& a, const OpVersion& b) {
  if (!a.program.origin.empty() && !b.program.origin.empty()) {
    return a.program.origin == b.program.origin;
  }
  return a.place == b.place && a.program.module == b.program.module;
}

absl::Status CheckRedefinition(const OpVersion& now, const OpVersion& before) {
  if (!SameOrigin(now, before)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "The op ", now.op_name, " is defined at ", Where(before), "; a second definition at ",
        Where(now), " is refused. Give one of them another name."));
  }
  if (!SameInterface(now.op_def, before.op_def)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "The op ", now.op_name, " at ", Where(now),
        " was defined with other inputs, attributes, outputs or state before; TensorFlow keeps the "
        "first signature of a name for the life of the process. Give the new one another name, or "
        "restart."));
  }
  return absl::OkStatus();
}

absl::Status RegisterWithTensorFlow(const Program& program) {
  const OpDef& op_def = program.op_def;
  OpRegistry::Global()->Register([&op_def](OpRegistrationData* data) {
    data->op_def = op_def;
    data->shape_inference_fn = ShapeFunction(op_def.name());
    return absl::OkStatus();
  });
  // Before the first look-up, TensorFlow would only queue the op, with a reference to our stack.
  TF_RETURN_IF_ERROR(OpRegistry::Global()->ProcessRegistrations());
  TF_RETURN_IF_ERROR(RegisterOpKernels(op_def.name()));
  RegisterXlaKernels(op_def, XlaConstantInputs(program));
  if (!program.composes.empty()) RegisterFallbackKernel(program.composes, op_def.name());
  return absl::OkStatus();
}

}  // namespace

Registry& Registry::Global() {
  static auto* registry = new Registry();
  return *registry;
}

absl::Status Registry::Register(const tensorflow::FunctionDefLibrary& program) {
  auto version = std::make_shared<OpVersion>();
  TF_ASSIGN_OR_RETURN(version->program, ParseProgram(program));
  version->op_def = version->program.op_def;
  version->op_name = version->op_def.name();
  version->digest = version->program.digest;
  version->place = version->program.place;
  TF_RETURN_IF_ERROR(CheckComposition(version->program));
  absl::MutexLock lock(&registration_mu_);
  const FindComposite find =
      [this](absl::string_view op_name,
             absl::string_view digest) -> absl::StatusOr<std::shared_ptr<const OpVersion>> {
    if (digest.empty() && !Contains(op_name)) return nullptr;
    return Find(op_name, digest);
  };
  TF_ASSIGN_OR_RETURN(version->reachable_ops, ResolveCalls(find, &version->program));
  const std::string op_name = version->op_name, composes = version->program.composes;
  const bool replaces = version->program.replaces;
  TF_RETURN_IF_ERROR(Add(std::move(version)));
  // Not before TensorFlow knows the op: a graph pass in another thread would make nodes of it.
  if (!composes.empty()) SetReplacement(composes, op_name, replaces);
  return absl::OkStatus();
}

absl::Status Registry::Add(std::shared_ptr<OpVersion> version) {
  auto before = Current(version->op_name);
  if (before.ok()) {
    if (Find(version->op_name, version->digest).ok()) return MakeCurrent(std::move(version));
    TF_RETURN_IF_ERROR(CheckRedefinition(*version, **before));
    return MakeCurrent(std::move(version));
  }
  // OpRegistry ends the process when a name is registered twice.
  if (OpRegistry::Global()->LookUp(version->op_name) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("TensorFlow has an op ", version->op_name,
                                                 " already; the composite at ", Where(*version),
                                                 " needs another name"));
  }
  const std::shared_ptr<const OpVersion> added = version;
  TF_RETURN_IF_ERROR(MakeCurrent(std::move(version)));
  return RegisterWithTensorFlow(added->program);
}

absl::Status Registry::MakeCurrent(std::shared_ptr<OpVersion> version) {
  absl::MutexLock lock(&mu_);
  Versions& versions = ops_[version->op_name];
  version->kernel_possible = KernelPossible(*version);
  auto [it, is_new] = versions.by_digest.emplace(version->digest, nullptr);
  // A known digest keeps its object, to which expansions and kernels are tied.
  if (is_new) it->second = std::move(version);
  versions.current = it->second;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return absl::OkStatus();
}

absl::Status Registry::RegisterFunction(const tensorflow::FunctionDefLibrary& library) {
  if (library.function().empty()) return absl::InvalidArgumentError("there is no function");
  auto version = std::make_shared<OpVersion>();
  version->op_name = kFunctionOp;
  version->digest = version->place = library.function(0).signature().name();
  const OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(kFunctionOp, &op_def));
  version->op_def = *op_def;
  TF_ASSIGN_OR_RETURN(version->reachable_ops, OpsOfFunctions(library));
  auto functions = std::make_shared<tensorflow::FunctionLibraryDefinition>(OpRegistry::Global());
  TF_RETURN_IF_ERROR(functions->AddLibrary(library));
  version->function = std::move(functions);
  absl::MutexLock lock(&mu_);
  version->kernel_possible = KernelPossible(*version);
  ops_[kFunctionOp].by_digest.emplace(version->digest, std::move(version));
  return absl::OkStatus();
}

void Registry::SetReplacement(const std::string& tf_op, const std::string& op_name, bool replaces) {
  absl::MutexLock lock(&mu_);
  if (replaces) {
    replacements_[tf_op] = op_name;
  } else {
    replacements_.erase(tf_op);
  }
  has_replacements_.store(!replacements_.empty(), std::memory_order_release);
}

std::shared_ptr<const OpVersion> Registry::Replacement(absl::string_view tf_op) const {
  if (!has_replacements()) return nullptr;
  absl::ReaderMutexLock lock(&mu_);
  auto it = replacements_.find(tf_op);
  return it == replacements_.end() ? nullptr : ops_.find(it->second)->second.current;
}

bool Registry::KernelPossible(const OpVersion& version) const {
  return !kernel_ops_.empty() &&
         std::all_of(version.reachable_ops.begin(), version.reachable_ops.end(),
                     [&](const std::string& op) { return kernel_ops_.contains(op); });
}

std::optional<std::vector<std::string>> Registry::OpsWithoutLowering(
    const OpVersion& version) const {
  absl::ReaderMutexLock lock(&mu_);
  if (kernel_ops_.empty()) return std::nullopt;
  std::vector<std::string> found;
  for (const std::string& op : version.reachable_ops) {
    if (!kernel_ops_.contains(op)) found.push_back(op);
  }
  return found;
}

void Registry::SetKernelOps(const std::vector<std::string>& ops) {
  absl::MutexLock lock(&mu_);
  kernel_ops_ = absl::flat_hash_set<std::string>(ops.begin(), ops.end());
  for (auto& [name, versions] : ops_) {
    for (auto& [digest, version] : versions.by_digest) {
      version->kernel_possible = KernelPossible(*version);
    }
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

absl::StatusOr<std::shared_ptr<const OpVersion>> Registry::Current(
    absl::string_view op_name) const {
  return Find(op_name, "");
}

absl::StatusOr<std::shared_ptr<const OpVersion>> Registry::Resolve(
    absl::string_view op_name, tensorflow::AttrSlice attrs) const {
  return Find(op_name, VersionOf(attrs.Find(VersionAttr(op_name))));
}

absl::StatusOr<std::shared_ptr<const OpVersion>> Registry::Find(absl::string_view op_name,
                                                                absl::string_view digest) const {
  absl::ReaderMutexLock lock(&mu_);
  auto op = ops_.find(op_name);
  if (op == ops_.end()) {
    return absl::NotFoundError(absl::StrCat("There is no composite op ", op_name,
                                            " in this process; import the module or load the "
                                            "library that defines it"));
  }
  if (digest.empty() && op->second.current != nullptr) return op->second.current;
  auto version = op->second.by_digest.find(digest);
  if (version != op->second.by_digest.end()) return version->second;
  if (op_name == kFunctionOp) {
    return absl::NotFoundError(
        absl::StrCat("The function \"", digest, "\" of a CompositeCall is not in this process"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("The node of ", op_name, " was made with another body (", digest.substr(0, 8),
                   ") than the one at ", Where(*op->second.current), " (",
                   op->second.current->digest.substr(0, 8),
                   "); load the library or the source that the model was made with"));
}

bool Registry::Contains(absl::string_view op_name) const {
  absl::ReaderMutexLock lock(&mu_);
  return ops_.contains(op_name);
}

bool Registry::empty() const {
  absl::ReaderMutexLock lock(&mu_);
  return ops_.empty();
}

}  // namespace composite
