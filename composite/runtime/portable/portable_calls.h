// Calls that stand for composites, made nodes of them again.
//
// A portable model (composite/saving/portable.py) calls a function of stock TensorFlow ops where a
// composite was. Such a call says on itself which node it stands for, and the digest of the
// function for which that holds. Where the op is there, in the very version, and the function is
// what it was, the node comes back, and with it its kernels; any other call stays.
#ifndef COMPOSITE_RUNTIME_PORTABLE_PORTABLE_CALLS_H_
#define COMPOSITE_RUNTIME_PORTABLE_PORTABLE_CALLS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace composite {

class PortableCalls {
 public:
  // `library` outlives this and is not changed meanwhile: a function that calls another is another
  // one once that has changed.
  explicit PortableCalls(const tensorflow::FunctionLibraryDefinition& library)
      : library_(library) {}

  // The node that a call stands for, with the call's name, inputs and device; empty if there is
  // none to come back. Its outputs are those of the call, in their order.
  absl::optional<tensorflow::NodeDef> NodeOf(const tensorflow::NodeDef& call);

  // A function with its nodes back; empty if it has none.
  absl::optional<tensorflow::FunctionDef> Restored(const tensorflow::FunctionDef& function);

 private:
  // The digest of what a function of the library computes; "" if it is not there.
  const std::string& DigestOf(const std::string& function);

  const tensorflow::FunctionLibraryDefinition& library_;
  absl::flat_hash_map<std::string, std::string> digests_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_PORTABLE_PORTABLE_CALLS_H_
