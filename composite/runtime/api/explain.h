// Which path a call would take now, and why, in words: the decision that the node's kernel would
// carry out (kernels/decide.h).
#ifndef COMPOSITE_RUNTIME_API_EXPLAIN_H_
#define COMPOSITE_RUNTIME_API_EXPLAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "composite/runtime/api/request.h"
#include "composite/runtime/kernels/options.h"
#include "composite/runtime/program/op_version.h"
#include "composite/runtime/request/kernel_shapes.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

// Attributes of the answer: see composite_explain.
absl::StatusOr<tensorflow::NodeDef> Explain(const OpVersion& version, tensorflow::AttrSlice attrs,
                                            const Signature& call, const Options& options);

// What XLA would be given for the call on the CPU at present, and why, in one line; empty where the
// body has no expansion for what is known of the call.
std::string ExplainXla(const CallRecord& call, tensorflow::AttrSlice attrs,
                       const Signature& signature, const Options& options);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_API_EXPLAIN_H_
