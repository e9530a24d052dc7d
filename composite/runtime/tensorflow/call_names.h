// Names for the calls of expansions, of one graph or function.
//
// Where TensorFlow inlines a call, a node of the expansion becomes "<call>/<node>", and a graph
// that has a name twice is refused. Such names may be there: Python puts what converts the inputs
// of a node under its name ("Dense/Cast" where Keras casts a variable), and a call may be named as
// if it stood in another.
#ifndef COMPOSITE_RUNTIME_TENSORFLOW_CALL_NAMES_H_
#define COMPOSITE_RUNTIME_TENSORFLOW_CALL_NAMES_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "composite/runtime/expand/expansion.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace composite {

class CallNames {
 public:
  explicit CallNames(const tensorflow::Graph& graph);
  explicit CallNames(const tensorflow::FunctionDef& function);

  // What to call the call of `expansion` that replaces `node`: that name itself, unless an inlined
  // node would have a name that is taken. No later call gets the names of these nodes.
  std::string Take(const std::string& node, const Expansion& expansion);

 private:
  bool IsFree(const std::string& call, const Expansion& expansion) const;

  absl::flat_hash_set<std::string> taken_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_TENSORFLOW_CALL_NAMES_H_
