#include "composite/runtime/tensorflow/registration.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/program/parse_program.h"
#include "composite/runtime/program/registry.h"
#include "composite/runtime/tensorflow/composition.h"
#include "composite/runtime/tensorflow/op_kernel_registration.h"
#include "composite/runtime/tensorflow/resolve_calls.h"
#include "composite/runtime/tensorflow/shape_function.h"
#include "composite/runtime/tensorflow/xla_kernel.h"
#include "composite/runtime/xla/xla_constants.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace {

using tensorflow::OpDef;
using tensorflow::OpRegistrationData;
using tensorflow::OpRegistry;

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
    return absl::AlreadyExistsError(absl::StrCat("The op ", now.op_name, " is defined at ",
                                                 DefinitionOf(before), "; a second definition at ",
                                                 DefinitionOf(now),
                                                 " is refused. Give one of them another name."));
  }
  if (!SameInterface(now.op_def, before.op_def)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "The op ", now.op_name, " at ", DefinitionOf(now),
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

// Adds the version, and registers its op with TensorFlow if that is new.
absl::Status AddVersion(std::shared_ptr<OpVersion> version) {
  Registry& registry = Registry::Global();
  auto before = registry.Current(version->op_name);
  if (before.ok()) {
    if (!registry.Find(version->op_name, version->digest).ok()) {
      TF_RETURN_IF_ERROR(CheckRedefinition(*version, **before));
    }
    registry.MakeCurrent(std::move(version));
    return absl::OkStatus();
  }
  // OpRegistry ends the process when a name is registered twice.
  if (OpRegistry::Global()->LookUp(version->op_name) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("TensorFlow has an op ", version->op_name,
                                                 " already; the composite at ",
                                                 DefinitionOf(*version), " needs another name"));
  }
  const std::shared_ptr<const OpVersion> added = version;
  registry.MakeCurrent(std::move(version));
  return RegisterWithTensorFlow(added->program);
}

// The version that a call in a program means; null where it calls no composite.
absl::StatusOr<std::shared_ptr<const OpVersion>> FindCallee(absl::string_view op_name,
                                                            absl::string_view digest) {
  if (digest.empty() && !Registry::Global().Contains(op_name)) return nullptr;
  return Registry::Global().Find(op_name, digest);
}

// Held across TensorFlow's own registration.
ForkMutex& RegistrationMutex() {
  static auto* mu = new ForkMutex;
  return *mu;
}

}  // namespace

absl::Status RegisterProgram(const tensorflow::FunctionDefLibrary& program) {
  auto version = std::make_shared<OpVersion>();
  TF_ASSIGN_OR_RETURN(version->program, ParseProgram(program));
  version->op_def = version->program.op_def;
  version->op_name = version->op_def.name();
  version->digest = version->program.digest;
  version->place = version->program.place;
  TF_RETURN_IF_ERROR(CheckComposition(version->program));
  absl::MutexLock lock(RegistrationMutex());
  TF_ASSIGN_OR_RETURN(ResolvedCalls calls, ResolveCalls(FindCallee, &version->program));
  version->unconditional_ops = std::move(calls.unconditional_ops);
  version->has_sums = calls.has_sums;
  const std::string op_name = version->op_name, composes = version->program.composes;
  const bool replaces = version->program.replaces;
  TF_RETURN_IF_ERROR(AddVersion(std::move(version)));
  // Not before TensorFlow knows the op: a graph pass in another thread would make nodes of it.
  if (!composes.empty()) Registry::Global().SetReplacement(composes, op_name, replaces);
  return absl::OkStatus();
}

}  // namespace composite
