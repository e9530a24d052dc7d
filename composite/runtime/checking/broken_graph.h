// Graphs that are broken on purpose, for tests of what becomes of one that the pass would break.
#ifndef COMPOSITE_RUNTIME_CHECKING_BROKEN_GRAPH_H_
#define COMPOSITE_RUNTIME_CHECKING_BROKEN_GRAPH_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

enum class Breaking { kNothing, kInput, kDtype, kCycle, kFunction };

// Of "input", "dtype", "cycle", "function" and "", which is kNothing. InvalidArgument for anything
// else.
absl::StatusOr<Breaking> ParseBreaking(absl::string_view value);

// What the calling thread does to each graph and each function that the pass has changed.
Breaking& ThreadBreaking();

// Breaks the first call of a made function: it loses an input, is given one of another dtype, waits
// for itself, or names no function. Nothing where there is none.
absl::Status Break(Breaking how, tensorflow::Graph* graph);
absl::Status Break(Breaking how, tensorflow::FunctionDef* function);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CHECKING_BROKEN_GRAPH_H_
