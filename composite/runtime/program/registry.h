// The table of the composite ops of this process: every version of every op that was registered.
//
// Not for: making an op known to TensorFlow, see tensorflow/registration.h.
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
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

// Thread-safe.
class Registry {
 public:
  static Registry& Global();

  // Adds a version of an op and makes it the op's current one. A known digest keeps its object, to
  // which expansions and kernels are tied.
  void MakeCurrent(std::shared_ptr<OpVersion> version) ABSL_LOCKS_EXCLUDED(mu_);

  // Adds a version for the nodes that name it; nothing when its digest is known.
  void Add(std::shared_ptr<OpVersion> version) ABSL_LOCKS_EXCLUDED(mu_);

  // Has the composite take the place of a TensorFlow op's nodes from now on, or no longer.
  void SetReplacement(const std::string& tf_op, const std::string& op_name, bool replaces)
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

  // Grows with each MakeCurrent and SetKernelOps, so that a node can check cheaply whether what it
  // decided may have changed.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  struct Versions {
    std::shared_ptr<const OpVersion> current;
    absl::flat_hash_map<std::string, std::shared_ptr<const OpVersion>> by_digest;
  };

  Registry() = default;

  bool KernelPossible(const OpVersion& version) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable ForkMutex mu_;
  absl::flat_hash_map<std::string, Versions> ops_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<std::string> kernel_ops_ ABSL_GUARDED_BY(mu_);
  // From a TensorFlow op to the composite that takes its place.
  absl::flat_hash_map<std::string, std::string> replacements_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> has_replacements_{false};
  std::atomic<uint64_t> generation_{1};
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_REGISTRY_H_
