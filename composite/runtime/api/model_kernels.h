// The kernels of regions that lie in a saved model, in a process that may have no Python.
#ifndef COMPOSITE_RUNTIME_API_MODEL_KERNELS_H_
#define COMPOSITE_RUNTIME_API_MODEL_KERNELS_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace composite {

// What describes such a folder, a GraphDef: the functions of regions as its library; its nodes are
// kernel records, whose `_library` is a file of the folder, and refusals: op kRefusedOp, the name
// of a region's function, and in kRefusedNodes those of its nodes that have no kernel.
inline constexpr char kModelKernels[] = "kernels.pb";
inline constexpr char kRefusedOp[] = "RefusedNodes";
inline constexpr char kRefusedNodes[] = "nodes";

// The refusals of this process, as nodes of such a description.
tensorflow::GraphDef Refusals();
// Remembers refusals, and leaves other nodes alone.
void Refuse(const tensorflow::GraphDef& refusals);

// Whether a folder has such a description.
bool IsModelKernels(const std::string& folder);

enum class NativeCode : bool { kNo, kYes };

// Registers regions with their kernels, and remembers refusals; without native code, nothing but
// these. `digest` is the SHA-256 (hex) of the description, "" for any; those of the kernels are in
// it. Kernels for another machine are left out, and so are, with a line in the log, those that
// another version of ours has written: a model works without. NotFound, PermissionDenied, DataLoss:
// a file is missing, cannot be read, or was changed.
absl::Status LoadModelKernels(const std::string& folder, const std::string& digest,
                              NativeCode native_code);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_API_MODEL_KERNELS_H_
