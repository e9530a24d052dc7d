// Nodes whose values nobody needs. A region that had them would be handed what they read, and be as
// large as if it computed them.
#ifndef COMPOSITE_RUNTIME_REGIONS_UNREAD_H_
#define COMPOSITE_RUNTIME_REGIONS_UNREAD_H_

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

// Removes them from the graph of a function, as far as a region might have them: TensorFlow removes
// all of them, later. `function` says which nodes its callers wait for.
void RemoveUnread(const tensorflow::FunctionDef& function, tensorflow::Graph* graph);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_REGIONS_UNREAD_H_
