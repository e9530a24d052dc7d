// The kernels of a built library's folder, opened without TensorFlow.
#ifndef COMPOSITE_RUNTIME_STANDALONE_LIBRARY_H_
#define COMPOSITE_RUNTIME_STANDALONE_LIBRARY_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "composite/runtime/standalone/failure.h"
#include "composite/runtime/standalone/function.h"
#include "composite/runtime/standalone/table.h"

namespace composite {
namespace standalone {

class Library {
 public:
  // Nothing is mapped before its digest is the manifest's. Null, and why. The library stays mapped
  // for ever.
  static std::unique_ptr<Library> Open(const std::string& folder, Failure* failure);

  // By the op's name in Python or in TensorFlow. `attributes`: see standalone_c_api.h; null: the
  // defaults. The function lives as long as the library. Null, and why. Thread-safe.
  const Function* Find(const std::string& op, const char* attributes, Failure* failure) const;

  const Table& table() const { return *table_; }

 private:
  Library(std::string folder, const Table* table) : folder_(std::move(folder)), table_(table) {}

  const Op* FindOp(const std::string& name) const;
  std::unique_ptr<Function> Make(const Op& op, const std::string& attributes,
                                 Failure* failure) const;

  const std::string folder_;
  const Table* const table_;
  mutable std::mutex mu_;
  // Under mu_: those that were asked for, by op and attributes.
  mutable std::map<std::pair<const Op*, std::string>, std::unique_ptr<Function>> functions_;
};

}  // namespace standalone
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STANDALONE_LIBRARY_H_
