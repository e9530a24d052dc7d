// COMPOSITE_RECORD: each kernel that the calls of a process ask for, as a line of a file, from
// which `composite build --signatures FILE` makes those kernels ahead of time.
//
//   {"call": {"act": "RELU", "w": ["float32", [32, 64], "constant"], "x": ["float32", ["s0", 64]]},
//    "op": "Dense"}
//
// Written by the call that asks: a process may be killed before the compiler takes the request.
// Requests of gradients are left out: they belong to functions without a name.
#ifndef COMPOSITE_RUNTIME_REQUEST_CALL_RECORD_H_
#define COMPOSITE_RUNTIME_REQUEST_CALL_RECORD_H_

#include <string>

#include "absl/types/optional.h"
#include "composite/runtime/request/kernel_shapes.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// The line, without its end; empty where JSON cannot hold an attribute. `request`: op, attributes
// and constants.
absl::optional<std::string> RecordedLine(const tensorflow::NodeDef& request,
                                         const Signature& shapes);

// Appends the line to the file that the environment names, unless the file has it: one write, so
// that processes may share the file, and one that dies leaves whole lines. A file that cannot be
// written is a warning. Nothing without COMPOSITE_RECORD.
void RecordCall(const tensorflow::NodeDef& request, const Signature& shapes);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REQUEST_CALL_RECORD_H_
