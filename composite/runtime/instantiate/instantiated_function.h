// A function that is ready to run in one function runtime.
#ifndef COMPOSITE_RUNTIME_INSTANTIATE_INSTANTIATED_FUNCTION_H_
#define COMPOSITE_RUNTIME_INSTANTIATE_INSTANTIATED_FUNCTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "composite/runtime/instantiate/placement.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/refcount.h"

namespace composite {

class InstantiatedFunction {
 public:
  using Runtime = tensorflow::FunctionLibraryRuntime;
  using Library = tensorflow::FunctionLibraryDefinition;

  // By the fastest executor that can run the function.
  static absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> Make(
      Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library);
  // By the standard executor, which says in an error which node failed.
  static absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> MakeTelling(
      Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library);
  // By the fastest executor, if it can run the function on the runtime's device alone, without
  // copies between its memory and the host's.
  static absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> MakeFast(
      Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library);
  // Over the devices of the process: a node runs on the runtime's device if it has a kernel there.
  static absl::StatusOr<std::unique_ptr<const InstantiatedFunction>> MakeSpread(
      Runtime* runtime, const std::string& name, std::shared_ptr<const Library> library,
      const Placement& placement);

  InstantiatedFunction(Runtime* runtime, std::shared_ptr<const Library> library,
                       Runtime::Handle handle);
  // A kernel that a session keeps for its state outlives the runtimes that it was called with, and
  // with them the handle.
  ~InstantiatedFunction();
  InstantiatedFunction(const InstantiatedFunction&) = delete;
  InstantiatedFunction& operator=(const InstantiatedFunction&) = delete;

  Runtime::Handle handle() const { return handle_; }
  // Whether its runtime lives.
  bool is_alive() const { return runtime_.GetNewRef() != nullptr; }
  // How many there are in the process.
  static int count();

 private:
  const tensorflow::core::WeakPtr<Runtime> runtime_;
  const std::shared_ptr<const Library> library_;  // of the handle
  const Runtime::Handle handle_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_INSTANTIATE_INSTANTIATED_FUNCTION_H_
