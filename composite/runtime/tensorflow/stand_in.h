// A node that keeps another's name, where the outputs of that one are computed elsewhere.
//
// A Session fetches and feeds by names, and nodes are placed beside each other by names.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_STAND_IN_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_STAND_IN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// An IdentityN named as `node`, without inputs; a NoOp if there are no outputs.
tensorflow::NodeDef StandIn(const std::string& node, const std::string& device,
                            absl::Span<const tensorflow::DataType> outputs);

// Has the outputs of `node` come from the first ones of `computing`: a stand-in takes its place.
absl::Status PutInPlace(tensorflow::Graph* graph, tensorflow::Node* computing,
                        tensorflow::Node* node);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_STAND_IN_H_
