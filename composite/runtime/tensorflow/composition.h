// Compositions: bodies for ops that TensorFlow has already.
//
// A composition of AddN is a composite op of its own, CompositeAddN, with AddN's signature. Nodes
// of AddN itself become nodes of it only where the author asked for that (`replaces`), in the graph
// pass; and where TensorFlow registered no kernel for a device, the composition is the kernel.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_COMPOSITION_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_COMPOSITION_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/program/program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace composite {

// The declaration of a composition for `tf_op`: TensorFlow's, under the name of the composite.
// NotFound: TensorFlow has no such op. InvalidArgument, with the reason, for an op that cannot have
// a composition: it keeps state, carries control flow, or takes or gives Ref tensors.
absl::StatusOr<tensorflow::OpDef> CompositionDeclaration(const std::string& tf_op);

// InvalidArgument unless a program that says it composes a TF op has that op's signature. A library
// may come from another TensorFlow.
absl::Status CheckComposition(const Program& program);

// Where the graph pass meets a node.
enum class NodeContext {
  kGraph,  // a graph, or the body of a function: the node is rewritten for good
  kEager,  // TensorFlow's wrapper of one eager call, which it keeps: see FinalExpansion
};

// What is known of the inputs of a composite's node.
using FactsOfNode = absl::FunctionRef<std::vector<InputFact>(const tensorflow::NodeDef&)>;

// The composition's node in the place of a TF op's, with the same attributes and names of inputs
// and outputs. Empty to leave that as it is: no composition replaces it, or the body has no
// expansion for these dtypes and attributes.
absl::optional<tensorflow::NodeDef> CompositionNode(const tensorflow::NodeDef& def,
                                                    NodeContext context, FactsOfNode facts);

// Functions in which TF's own ops stay: those that XLA compiles, which knows TF's ops only, and
// what they call.
absl::flat_hash_set<std::string> FunctionsOfXla(
    const tensorflow::FunctionLibraryDefinition& library);

// Conditions and bodies of loops, and what they call.
absl::flat_hash_set<std::string> FunctionsOfLoops(
    const tensorflow::FunctionLibraryDefinition& library);

// The same as FunctionsOfXla for one function by itself. Expansions and their derivatives are among
// them: an op in a body means TensorFlow's own, or a composition could not call the op that it
// composes.
bool KeepsTfOps(const tensorflow::FunctionDef& function);

// Whether the function is an expansion, or a derivative of one.
bool IsMade(const tensorflow::FunctionDef& function);

bool IsEagerWrapper(const tensorflow::FunctionDef& function);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_COMPOSITION_H_
