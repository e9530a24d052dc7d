// What is common to all nodes of one compilation by XLA: how long it waits for kernels, and for
// which functions' calls kernels were asked.
#ifndef COMPOSITE_RUNTIME_XLA_COMPILATION_H_
#define COMPOSITE_RUNTIME_XLA_COMPILATION_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tensorflow/compiler/tf2xla/xla_compiler.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/platform/refcount.h"

namespace composite {

// Lives as long as the compiler, which has one thread.
class Compilation : public tensorflow::ResourceBase {
 public:
  // That of a compiler, made when it is first asked for.
  static absl::StatusOr<tensorflow::core::RefCountPtr<Compilation>> Of(
      tensorflow::XlaCompiler* compiler);

  // Has another compiler, of a part of the same code, be of this compilation.
  absl::Status Include(tensorflow::XlaCompiler* part);

  // When a wait ends that may last `most`, counted from the first wait of the compilation.
  absl::Time Until(absl::Duration most);

  // Whether this is the first question about a function.
  bool IsFirst(const std::string& function) { return functions_.insert(function).second; }

  std::string DebugString() const override { return "a compilation by XLA"; }

 private:
  absl::optional<absl::Time> first_wait_;
  absl::flat_hash_set<std::string> functions_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_XLA_COMPILATION_H_
