// Libraries of foreign functions, and the table of those that this process has loaded.
//
// A node names its library by the SHA-256 of the file, and a library is loaded because somebody
// asked for it by name: a graph that comes from elsewhere loads no native code.
#ifndef COMPOSITE_RUNTIME_FOREIGN_LIBRARY_H_
#define COMPOSITE_RUNTIME_FOREIGN_LIBRARY_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "composite/runtime/foreign/function.h"
#include "composite/runtime/foreign/tvm_ffi.h"

namespace composite {

// Thread-safe.
class ForeignLibrary {
 public:
  struct Found {
    std::shared_ptr<const ForeignFunction> function;
    bool returns = false;  // it makes its outputs, and fills none
  };

  virtual ~ForeignLibrary() = default;
  // NotFound, with what there is instead.
  virtual absl::StatusOr<Found> Find(const std::string& name) = 0;
  // The names that are known without a look into TVM's runtime.
  virtual const std::vector<std::string>& names() const = 0;
};

// What a node calls a library by.
struct Loaded {
  std::string id;
  std::shared_ptr<ForeignLibrary> library;
};

// The library at a path, with the SHA-256 of its bytes as its id. A library of kernels alone runs
// on TensorFlow's threads and memory; one that needs TVM's runtime is loaded by that. It is mapped
// from a copy in memory, so that the file may be written again. Loading the same bytes again gives
// what was loaded. DataLoss unless the bytes have `sha256`, where that is not empty; NotFound,
// PermissionDenied, InvalidArgument (no library, or cut short), FailedPrecondition (it lacks
// something).
absl::StatusOr<Loaded> LoadForeignLibrary(const std::string& path, const std::string& sha256,
                                          const tvm_ffi::Libraries& tvm);

// A function or module of TVM's that lives in this process, kept from now on. The same object has
// the same id, which means nothing elsewhere. `serial`: see ObjectFunction; `returns`: as Found.
absl::StatusOr<Loaded> LoadForeignObject(void* object, bool serial, bool returns,
                                         const tvm_ffi::Libraries& tvm);

// What was loaded by that id. FailedPrecondition that says how to load it.
absl::StatusOr<std::shared_ptr<ForeignLibrary>> FindForeignLibrary(const std::string& id);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_LIBRARY_H_
