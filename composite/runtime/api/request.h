// A call as the C API describes it: NodeDef op = name, the op's attributes, `_composite_program`,
// `_in_shapes`, `_constants`.
#ifndef COMPOSITE_RUNTIME_API_REQUEST_H_
#define COMPOSITE_RUNTIME_API_REQUEST_H_

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "composite/runtime/graph/facts.h"
#include "composite/runtime/program/op_version.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

struct CallRecord {
  std::shared_ptr<const OpVersion> version;
  std::vector<InputFact> facts;              // point into constants
  std::deque<tensorflow::Tensor> constants;  // a deque's elements stay where they are when moved
};

// Missing shapes are unknown. InvalidArgument when there are some, but not one for each input.
absl::StatusOr<CallRecord> ReadCall(const tensorflow::NodeDef& record);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_API_REQUEST_H_
