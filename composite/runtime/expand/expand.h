// The one meaning of a program: its expansion to TensorFlow nodes for given attributes, dtypes and
// whatever is known of shapes and constants. Shape function, graph pass, op kernel, XLA, gradient
// and kernel compiler all start from this result.
//
// Three outcomes: an expansion, an error with the author's place, or "not yet" (see not_yet.h),
// which names the fact that is missing: a dim that is unknown while tracing is known at run time.
#ifndef COMPOSITE_RUNTIME_EXPAND_EXPAND_H_
#define COMPOSITE_RUNTIME_EXPAND_EXPAND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/expand/expansion.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

// list(string): the versions of composites that stay nodes where the program calls them, such as
// those whose author gave them a gradient.
inline constexpr char kWholeAttr[] = "_composite_whole";
// bool, of kFunctionOp: the function's nodes of composites are expanded, as the kernel compiler
// wants it. Else they stay nodes, which have kernels of their own.
inline constexpr char kInlinedAttr[] = "_composite_inlined";
// bool: a loop of more than a few trips is a While where it can be one, though its trips are known.
inline constexpr char kLoopsAttr[] = "_composite_loops";

// `attrs` are the op's attributes, derived ones included; a missing one has its default. `facts`
// must agree in number and dtypes with them. Results are cached by what the evaluation read of the
// facts, in an LRU with a bound: to hold the pointer keeps only that expansion alive.
absl::StatusOr<std::shared_ptr<const Expansion>> GetExpansion(
    const std::shared_ptr<const OpVersion>& version, tensorflow::AttrSlice attrs,
    absl::Span<const InputFact> facts);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPAND_EXPAND_H_
