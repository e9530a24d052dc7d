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

struct DirectGraph {
  std::string name;
  std::shared_ptr<const tensorflow::FunctionLibraryDefinition> library;
  // Of each capture: DT_INVALID for one that the function is given as it is, the dtype of a
  // variable for one that is given what the variable of that handle holds.
  std::vector<tensorflow::DataType> reads;
};

// Of a function, whose `arguments` are followed by captures, by all passes of TensorFlow and of
// this runtime, and by grappler as `config` says. FailedPrecondition with the reason where the
// function should not be called so: more devices than this CPU, nodes that change something, large
// constants, or work that several threads could share.
absl::StatusOr<DirectGraph> DirectGraphOf(tensorflow::FunctionLibraryRuntime* runtime,
                                          const tensorflow::FunctionDef& function,
                                          const tensorflow::FunctionLibraryDefinition& library,
                                          const tensorflow::ConfigProto& config, int arguments);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_DIRECT_GRAPH_H_
