// Which path a call would take now, and why, in words. Decides nothing: it asks what op_kernel.cc
// asks, in the same order.
#ifndef COMPOSITE_RUNTIME_EXPLAIN_H_
#define COMPOSITE_RUNTIME_EXPLAIN_H_

#include "absl/status/statusor.h"
#include "composite/runtime/kernel_shapes.h"
#include "composite/runtime/options.h"
#include "composite/runtime/registry.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

// Attributes of the answer: see composite_explain.
absl::StatusOr<tensorflow::NodeDef> Explain(const OpVersion& version, tensorflow::AttrSlice attrs,
                                            const Signature& call, const Options& options);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_EXPLAIN_H_
