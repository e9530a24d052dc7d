// The composite ops of this process: every version of every op that was registered.
#ifndef COMPOSITE_RUNTIME_PROGRAM_REGISTRY_H_
#define COMPOSITE_RUNTIME_PROGRAM_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "composite/runtime/program/program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

// The node attribute that names the body a node was made with.
inline constexpr char kProgramAttr[] = "_composite_program";
// Which inputs of a node never change: positions among the flattened inputs.
inline constexpr char kConstantsAttr[] = "_composite_constants";
// Which of them are what a variable holds.
inline constexpr char kVariablesAttr[] = "_composite_variables";

// One body of one op. Immutable but for kernel_possible; lives as long as anything points to it.
struct OpVersion {
  std::string op_name;
  std::string digest;
  std::string place;
  tensorflow::OpDef op_def;
  Program program;
  // Of kFunctionOp, which has no program: holds the function that is called `digest`.
  std::shared_ptr<const tensorflow::FunctionLibraryDefinition> function;
  std::vector<std::string> reachable_ops;  // TF ops named by the program or what it calls; sorted
  // Whether every TF op that the program can reach is one that the kernel compiler can lower. False
  // until SetKernelOps was called: a process that only serves compiles nothing.
  mutable std::atomic<bool> kernel_possible{false};
};

// Thread-safe.
class Registry {
 public:
  static Registry& Global();

  // Makes a new op known to TensorFlow, or adds a version of a known one and makes it current.
  // Registering the same digest again makes that version current and is otherwise nothing.
  // InvalidArgument: a malformed program, or an op that the program calls is unknown.
  // Or it composes a TensorFlow op that it does not fit, see CheckComposition.
  // AlreadyExists: TensorFlow has an op of that name, or another place defines it, or the new
  // definition has another signature; the message names both places.
  absl::Status Register(const tensorflow::FunctionDefLibrary& program) ABSL_LOCKS_EXCLUDED(mu_);

  // Makes function[0] a version of kFunctionOp, under its name; the others are what it reaches.
  // Nothing when the name is known. InvalidArgument: it is malformed, calls an unknown op, or keeps
  // state.
  absl::Status RegisterFunction(const tensorflow::FunctionDefLibrary& library)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The TF ops that the kernel compiler can lower.
  void SetKernelOps(const std::vector<std::string>& ops) ABSL_LOCKS_EXCLUDED(mu_);

  // Those of a version's ops that the kernel compiler cannot lower; nullopt without a compiler.
  std::optional<std::vector<std::string>> OpsWithoutLowering(const OpVersion& version) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // NotFound when no composite has this name.
  absl::StatusOr<std::shared_ptr<const OpVersion>> Current(absl::string_view op_name) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // The version that a node with these attributes stands for: the one it was stamped with, the
  // current one without a stamp. FailedPrecondition when the stamp names a body that this process
  // does not have.
  absl::StatusOr<std::shared_ptr<const OpVersion>> Resolve(absl::string_view op_name,
                                                           tensorflow::AttrSlice attrs) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // The same with the digest in hand; "" means the current version.
  absl::StatusOr<std::shared_ptr<const OpVersion>> Find(absl::string_view op_name,
                                                        absl::string_view digest) const
      ABSL_LOCKS_EXCLUDED(mu_);

  bool Contains(absl::string_view op_name) const ABSL_LOCKS_EXCLUDED(mu_);

  // The composition that takes the place of a TensorFlow op's nodes; null where none was asked to.
  std::shared_ptr<const OpVersion> Replacement(absl::string_view tf_op) const
      ABSL_LOCKS_EXCLUDED(mu_);
  bool has_replacements() const { return has_replacements_.load(std::memory_order_acquire); }
  bool empty() const ABSL_LOCKS_EXCLUDED(mu_);

  // Grows with each Register and SetKernelOps, so that a node can check cheaply whether what it
  // decided may have changed.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  struct Versions {
    std::shared_ptr<const OpVersion> current;
    absl::flat_hash_map<std::string, std::shared_ptr<const OpVersion>> by_digest;
  };

  Registry() = default;

  absl::Status Add(std::shared_ptr<OpVersion> version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(registration_mu_) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MakeCurrent(std::shared_ptr<OpVersion> version) ABSL_LOCKS_EXCLUDED(mu_);
  // Has the op's nodes replaced from now on, or no longer.
  void SetReplacement(const std::string& tf_op, const std::string& op_name, bool replaces)
      ABSL_LOCKS_EXCLUDED(mu_);
  bool KernelPossible(const OpVersion& version) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::Mutex registration_mu_;  // held across TensorFlow's own registration, before mu_
  absl::flat_hash_map<std::string, Versions> ops_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<std::string> kernel_ops_ ABSL_GUARDED_BY(mu_);
  // From a TensorFlow op to the composite that takes its place.
  absl::flat_hash_map<std::string, std::string> replacements_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> has_replacements_{false};
  std::atomic<uint64_t> generation_{1};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_REGISTRY_H_
