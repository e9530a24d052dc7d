// What a program expands to: a TensorFlow function, and the facts that it depends on.
#ifndef COMPOSITE_RUNTIME_EXPAND_EXPANSION_H_
#define COMPOSITE_RUNTIME_EXPAND_EXPANSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/graph/facts.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"

namespace tensorflow {
struct FunctionBody;
}

namespace composite {

// Set on the errors of an expansion with kInlinedAttr (expand.h): the name of the node that has
// none.
inline constexpr char kNodePayload[] = "composite/node";

// Immutable and shared between all users. Anything instantiated from `library` must not outlive it.
struct Expansion {
  std::string name;  // "__composite_<Op>_<16 hex digits of what it depends on>"
  // Holds the expansion, and the functions it refers to.
  std::shared_ptr<const tensorflow::FunctionLibraryDefinition> library;
  // Input args: the op's inputs flattened ("x", or "x_0", "x_1", ... for a list), in order, with
  // concrete dtypes; output args likewise. control_ret: the stateful nodes.
  tensorflow::FunctionDef fdef;
  std::vector<ReadFact> reads;  // sorted by input and what

  // The function as a graph, made at the first call; likewise one that it refers to.
  absl::StatusOr<const tensorflow::FunctionBody*> Body() const { return Body(name); }
  absl::StatusOr<const tensorflow::FunctionBody*> Body(const std::string& function) const;

  // Whether GetExpansion would give this expansion for the same version, attributes and dtypes with
  // these facts. Takes no lock.
  bool Matches(absl::Span<const InputFact> facts) const;

 private:
  mutable ForkMutex mu_;
  mutable absl::flat_hash_map<std::string, std::shared_ptr<const tensorflow::FunctionBody>> bodies_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_EXPANSION_H_
