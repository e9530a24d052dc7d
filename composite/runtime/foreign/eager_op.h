// The ops that call a foreign function, as they are registered for eager calls.
#ifndef COMPOSITE_RUNTIME_FOREIGN_EAGER_OP_H_
#define COMPOSITE_RUNTIME_FOREIGN_EAGER_OP_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace composite {

// The op for eager calls of what a node calls, a CompositeTvmCall or CompositeStatefulTvmCall with
// all of its attributes; it is in no graph. TensorFlow encodes and hashes each attribute of an op
// in each eager call, 0.4 us each, so this op has none. It is registered when it is asked for
// first. Ops stay for the life of the process: empty where there are too many of them.
absl::StatusOr<std::string> EagerOpFor(const tensorflow::NodeDef& call);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_EAGER_OP_H_
