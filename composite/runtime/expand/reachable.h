// Which TF ops a program names, and whether a composite may contain them.
#ifndef COMPOSITE_RUNTIME_EXPAND_REACHABLE_H_
#define COMPOSITE_RUNTIME_EXPAND_REACHABLE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "composite/runtime/program/program.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/function.pb.h"

namespace composite {

// The version of a composite, or null when the name is none.
using FindComposite = std::function<absl::StatusOr<std::shared_ptr<const OpVersion>>(
    absl::string_view op_name, absl::string_view digest)>;

// The TF ops that the program can reach through its regions and the composites it calls, sorted.
// Calls of composites without a digest get that of the current version, so that a later
// redefinition of the callee leaves this program as it was.
// InvalidArgument with the author's place for an unknown op, an unknown operator, a stateful random
// op (naming its stateless twin), a Ref op, and for a stateful op in an op declared stateless.
absl::StatusOr<std::vector<std::string>> ResolveCalls(const FindComposite& find, Program* program);

// The ops of a function and of all that it reaches, sorted. InvalidArgument, naming the node, for
// an unknown op and for one that keeps state.
absl::StatusOr<std::vector<std::string>> OpsOfFunctions(
    const tensorflow::FunctionDefLibrary& library);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_REACHABLE_H_
