// The one meaning of a program: its expansion to TensorFlow nodes for given attributes, dtypes and
// whatever is known of shapes and constants. Shape function, graph pass, op kernel, XLA, gradient
// and kernel compiler all start from this result.
//
// Three outcomes: an expansion, an error with the author's place, or "not yet" (IsNotYet), which
// names the fact that is missing: a dim that is unknown while tracing is known at run time.
#ifndef COMPOSITE_RUNTIME_EXPAND_EXPAND_H_
#define COMPOSITE_RUNTIME_EXPAND_EXPAND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "composite/runtime/program/registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/partial_tensor_shape.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow {
struct FunctionBody;
}

namespace composite {

// What is known of one input tensor. Inputs are flattened: each element of a list input has one.
struct InputFact {
  tensorflow::DataType dtype;
  tensorflow::PartialTensorShape shape;          // unknown rank by default
  const tensorflow::Tensor* constant = nullptr;  // not owned; null when the value is not known
};

// One thing that an evaluation looked at: what it was is part of an expansion's key.
struct ReadFact {
  static constexpr int kRank = -1;
  static constexpr int kConstant = -2;

  int input;                  // of the flattened inputs
  int what;                   // a dim (>= 0), kRank or kConstant
  int64_t value = -1;         // size of the dim or rank; -1: it was not known
  tensorflow::Tensor tensor;  // kConstant, when value >= 0
};

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
  mutable absl::Mutex mu_;
  mutable absl::flat_hash_map<std::string, std::shared_ptr<const tensorflow::FunctionBody>> bodies_
      ABSL_GUARDED_BY(mu_);
};

// True for FailedPrecondition with the payload "composite/not_yet".
bool IsNotYet(const absl::Status& status);

// list(string): the versions of composites that stay nodes where the program calls them, such as
// those whose author gave them a gradient.
inline constexpr char kWholeAttr[] = "_composite_whole";

// `attrs` are the op's attributes, derived ones included; a missing one has its default. `facts`
// must agree in number and dtypes with them. Results are cached by what the evaluation read of the
// facts, in an LRU with a bound: to hold the pointer keeps only that expansion alive.
absl::StatusOr<std::shared_ptr<const Expansion>> GetExpansion(
    const std::shared_ptr<const OpVersion>& version, tensorflow::AttrSlice attrs,
    absl::Span<const InputFact> facts);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_EXPAND_H_
