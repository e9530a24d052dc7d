// What TensorFlow's optimizer would read at another output of a node than the graph does.
#ifndef COMPOSITE_RUNTIME_CHECKING_OPTIMIZER_READS_H_
#define COMPOSITE_RUNTIME_CHECKING_OPTIMIZER_READS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Of ArgMax(Acos(x)) TensorFlow 2.21 makes ArgMin(x), and Tanh(Max(x)) of Max(Tanh(x)). The
// reduction then reads output 0 of the node that gives x, whichever output x is
// (OptimizeMaxOrMinOfMonotonicStage in
// tensorflow/core/grappler/optimizers/arithmetic_optimizer.cc). Values of other outputs of `node`
// pass a node of their own on the way to such functions.
absl::Status KeepOutputs(tensorflow::Node* node, tensorflow::Graph* graph);

// The same for all nodes of a graph whose op `is_kept`.
absl::Status KeepOutputs(absl::FunctionRef<bool(const std::string&)> is_kept,
                         tensorflow::Graph* graph);
// Whether that changes anything.
bool AreOutputsReadElsewhere(absl::FunctionRef<bool(const std::string&)> is_kept,
                             const tensorflow::Graph& graph);

// The same for a function; empty where nothing has to be done.
absl::optional<tensorflow::FunctionDef> WithKeptOutputs(
    const tensorflow::FunctionDef& function, absl::FunctionRef<bool(const std::string&)> is_kept);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_CHECKING_OPTIMIZER_READS_H_
