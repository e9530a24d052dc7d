// How calls of composites are answered: composite.options and its defaults.
//
// A graph node carries its options as attributes, from when it was made. An eager call takes those
// of its thread; whatever is not set there is the default of the process (COMPOSITE_BACKEND,
// COMPOSITE_NUMERICS and COMPOSITE_XLA, or composite_set_options).
#ifndef COMPOSITE_RUNTIME_KERNELS_OPTIONS_H_
#define COMPOSITE_RUNTIME_KERNELS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

inline constexpr char kBackendAttr[] = "_composite_backend";
inline constexpr char kNumericsAttr[] = "_composite_numerics";
inline constexpr char kXlaWaitAttr[] = "_composite_xla_wait";
// A node that the just-in-time worker made to measure and check: it is not in the statistics.
inline constexpr char kUncountedAttr[] = "_composite_uncounted";

enum class Backend : signed char { kUnset, kAuto, kTvm, kTf };
enum class Numerics : signed char { kUnset, kFast, kStrict, kInvariant };

// How long a compilation by XLA waits for the kernel of a node, in milliseconds.
inline constexpr int32_t kXlaUnset = -2;
inline constexpr int32_t kXlaNever = -1;  // XLA compiles the expansion
inline constexpr int32_t kXlaDefault = 30'000;

struct Options {
  Backend backend = Backend::kUnset;
  Numerics numerics = Numerics::kUnset;
  int32_t xla_wait = kXlaUnset;

  bool operator==(const Options& other) const {
    return backend == other.backend && numerics == other.numerics && xla_wait == other.xla_wait;
  }
  // The kernel is a must: no kernel is an error.
  bool must() const { return backend == Backend::kTvm; }
  // The bits of the expansion: a kernel may run only if it must, and gives them.
  bool strict() const { return numerics == Numerics::kStrict; }
  // The bits of a row are those that it has in any batch: no kernel but those made for that, and
  // no change of path. A call waits for its kernel.
  bool invariant() const { return numerics == Numerics::kInvariant; }
  // No kernel may run.
  bool expansion_only() const { return backend == Backend::kTf || (strict() && !must()); }
  // Fields that are not set here, from `other`.
  Options Or(const Options& other) const;
};

// InvalidArgument that names the values there are. "" is kUnset. `xla`: "never" or seconds.
absl::StatusOr<Options> ParseOptions(absl::string_view backend, absl::string_view numerics,
                                     absl::string_view xla);
const char* Name(Backend backend);
const char* Name(Numerics numerics);
std::string XlaWaitText(int32_t xla_wait);  // as ParseOptions takes it

// What the node says itself.
absl::StatusOr<Options> NodeOptions(tensorflow::AttrSlice attrs);

// InvalidArgument when one of the three variables of the environment holds another value.
absl::StatusOr<Options> ProcessOptions();
void SetProcessOptions(const Options& options);

// Of the calling thread.
Options& ThreadOptions();

// False when COMPOSITE_JIT=0.
bool JitAllowed();

// tf.config.experimental.enable_op_determinism. TF 2.21 keeps the answer behind a mutex that no
// fork waits for; to ask here leaves it free in children.
bool DeterminismRequired();

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_KERNELS_OPTIONS_H_
