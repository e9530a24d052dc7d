// The graph of a function as TensorFlow runs it, if one thread runs it as fast as many.
#ifndef COMPOSITE_RUNTIME_DIRECT_DIRECT_GRAPH_H_
#define COMPOSITE_RUNTIME_DIRECT_DIRECT_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace composite {

// What the graph takes: an argument of the function, captures among them. Those that nobody reads
// are gone.
struct DirectArgument {
  int index;
  // DT_INVALID: it is given as it is. Else of a variable, whose handle it is: what that holds.
  tensorflow::DataType reads;
};

struct DirectGraph {
  std::string name;
  std::shared_ptr<const tensorflow::FunctionLibraryDefinition> library;
  std::vector<DirectArgument> arguments;  // in order
};

// On the CPU that is the only device: of a function, whose `arguments` are followed by captures, by
// all passes of TensorFlow and of this runtime, and by grappler as `config` says.
// FailedPrecondition with the reason where the function should not be called so: nodes that change
// something, large constants, or work that several threads could share.
absl::StatusOr<DirectGraph> DirectGraphOf(tensorflow::FunctionLibraryRuntime* runtime,
                                          const tensorflow::FunctionDef& function,
                                          const tensorflow::FunctionLibraryDefinition& library,
                                          const tensorflow::ConfigProto& config, int arguments);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_DIRECT_GRAPH_H_
