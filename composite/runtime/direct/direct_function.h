// A function with its captures, ready to be called on the thread of whoever calls it.
#ifndef COMPOSITE_RUNTIME_DIRECT_DIRECT_FUNCTION_H_
#define COMPOSITE_RUNTIME_DIRECT_DIRECT_FUNCTION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/direct/direct_call.h"
#include "composite/runtime/direct/direct_graph.h"
#include "composite/runtime/instantiate/instantiated_function.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace composite {

class DirectFunction : public DirectCall {
 public:
  // Of the function `name` in the library of `runtime`, whose last arguments are `captures`. The
  // status is that of DirectGraphOf, or says which node no single thread can run.
  static absl::StatusOr<std::shared_ptr<const DirectFunction>> Make(
      tensorflow::FunctionLibraryRuntime* runtime, const std::string& name,
      const tensorflow::ConfigProto& config, std::vector<tensorflow::Tensor> captures);

  // The arguments are those before the captures.
  absl::Status Call(absl::Span<const tensorflow::Tensor* const> arguments,
                    absl::Span<tensorflow::Tensor> results) const override;

 private:
  // Of the captures, one that the graph takes.
  struct Capture {
    tensorflow::Tensor tensor;
    tensorflow::DataType reads;  // as of DirectArgument
    // Where the handle owns its variable, and so has no other while it lives. Else it is looked up.
    tensorflow::Var* variable = nullptr;
  };

  DirectFunction() = default;

  // What the graph takes of the captures.
  absl::Status ReadCaptures(std::vector<tensorflow::Tensor>* values) const;

  // A runtime of its own: that of the process may forget what it has instantiated.
  std::unique_ptr<tensorflow::FunctionLibraryDefinition> no_functions_;
  std::unique_ptr<tensorflow::ProcessFunctionLibraryRuntime> process_;
  tensorflow::FunctionLibraryRuntime* runtime_ = nullptr;
  // What the graph takes: of the arguments before the captures these, and then of those.
  std::vector<int> given_;
  std::vector<Capture> captures_;
  std::unique_ptr<const InstantiatedFunction> function_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_DIRECT_DIRECT_FUNCTION_H_
