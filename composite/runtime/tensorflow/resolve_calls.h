// What the calls in a program mean, at its registration: composites or TF ops, and whether a body
// may contain them.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_RESOLVE_CALLS_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_RESOLVE_CALLS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/program/program.h"

namespace composite {

// The version of a composite, or null when the name is none.
using FindComposite = std::function<absl::StatusOr<std::shared_ptr<const OpVersion>>(
    absl::string_view op_name, absl::string_view digest)>;

// See OpVersion, which has the same. The ops of the composites that a program calls are among them.
struct ResolvedCalls {
  std::vector<std::string> unconditional_ops;
  bool has_sums = false;
};

// Calls of composites without a digest get that of the current version, so that a later
// redefinition of the callee leaves this program as it was.
// InvalidArgument with the author's place for an unknown op, an unknown operator, a stateful random
// op (naming its stateless twin), a Ref op, and for a stateful op in an op declared stateless.
absl::StatusOr<ResolvedCalls> ResolveCalls(const FindComposite& find, Program* program);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_RESOLVE_CALLS_H_
