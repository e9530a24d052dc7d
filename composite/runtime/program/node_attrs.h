// The attributes by which nodes of composites say which version they stand for, and what never
// changes of their inputs.
#ifndef COMPOSITE_RUNTIME_PROGRAM_NODE_ATTRS_H_
#define COMPOSITE_RUNTIME_PROGRAM_NODE_ATTRS_H_

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace composite {

// The node attribute that names the body a node was made with.
inline constexpr char kProgramAttr[] = "_composite_program";
// Which inputs of a node never change: positions among the flattened inputs.
inline constexpr char kConstantsAttr[] = "_composite_constants";
// Which inputs of a node are what a variable holds.
inline constexpr char kVariablesAttr[] = "_composite_variables";

// Which inputs of a node are arguments of the function that the node is in. A caller may pass the
// same tensor in each call, as it passes those that the function captured.
inline constexpr char kArgumentsAttr[] = "_composite_arguments";

// Pairs of an input, what a variable held, and the output that it is to hold.
inline constexpr char kUpdatesAttr[] = "_composite_updates";

// CompositeCall(f): the op for whatever has no name of its own, a derived gradient for one. Its
// nodes run a TensorFlow function as those of a composite run their expansion, kernels included.
inline constexpr char kFunctionOp[] = "CompositeCall";
inline constexpr char kFunctionAttr[] = "f";
// On such a node that keeps values for a backward (tensorflow/saving_forward.h): the name of the
// forward node that it is to take the place of.
inline constexpr char kSavingForwardAttr[] = "_composite_twin";
// Begins the names of the functions that the runtime makes.
inline constexpr char kMadePrefix[] = "__composite_";
// Begins the names of the functions of regions (composite/runtime/regions).
inline constexpr char kRegionPrefix[] = "__composite_region_";

// The attribute by which nodes of this op say their version: the program's digest, or the function.
const char* VersionAttr(absl::string_view op_name);

// The version that the attribute names; "" where there is none.
absl::string_view VersionOf(const tensorflow::AttrValue* version_attr);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PROGRAM_NODE_ATTRS_H_
