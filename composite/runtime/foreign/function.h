// A function that somebody compiled or wrote, called with TensorFlow's tensors.
#ifndef COMPOSITE_RUNTIME_FOREIGN_FUNCTION_H_
#define COMPOSITE_RUNTIME_FOREIGN_FUNCTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "composite/runtime/foreign/tvm_ffi.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

using Inputs = absl::InlinedVector<const tensorflow::Tensor*, 8>;
using Outputs = absl::InlinedVector<tensorflow::Tensor*, 4>;

// The device that a call runs on, and the stream of it that TensorFlow gives its work to.
struct DeviceStream {
  tvm_abi::Device device;
  void* stream;
};

// Thread-safe. A call fails with what the function raised, by KernelError.
class ForeignFunction {
 public:
  virtual ~ForeignFunction() = default;

  // Passes the inputs and then the outputs, which the function fills. `host`: what kernels run on.
  virtual absl::Status Fill(const tvm_abi::Host& host, const Inputs& inputs,
                            const Outputs& outputs) const = 0;

  // The same on a GPU, where all of these lie: what the function gives to the stream fills them.
  virtual absl::Status FillOn(const DeviceStream& stream, const Inputs& inputs,
                              const Outputs& outputs) const = 0;

  // Passes tensors of TVM's that lie on a device which TensorFlow does not know: the inputs, and
  // then the outputs.
  virtual absl::Status Run(const tvm_abi::Host& host,
                           absl::Span<const tvm_abi::Any> tensors) const = 0;

  // Passes the inputs; the function makes the outputs, of these dtypes. They are copied from what
  // it returns, which it may go on using.
  virtual absl::StatusOr<std::vector<tensorflow::Tensor>> Make(
      const Inputs& inputs, absl::Span<const tensorflow::DataType> dtypes) const = 0;

  // Whether it may hold on to tensors that it was passed, beyond the call.
  virtual bool may_keep_tensors() const = 0;
};

// A kernel, run on TensorFlow's threads and with its memory. It can only fill outputs.
class KernelFunction : public ForeignFunction {
 public:
  KernelFunction(std::string name, tvm_abi::Function function)
      : name_(std::move(name)), function_(function) {}

  absl::Status Fill(const tvm_abi::Host& host, const Inputs& inputs,
                    const Outputs& outputs) const override;
  absl::Status FillOn(const DeviceStream& stream, const Inputs& inputs,
                      const Outputs& outputs) const override;
  absl::Status Run(const tvm_abi::Host& host,
                   absl::Span<const tvm_abi::Any> tensors) const override;
  absl::StatusOr<std::vector<tensorflow::Tensor>> Make(
      const Inputs& inputs, absl::Span<const tensorflow::DataType> dtypes) const override;
  bool may_keep_tensors() const override { return false; }

 private:
  absl::Status Call(const tvm_abi::Host& host, absl::Span<tvm_abi::Tensor> tensors) const;

  const std::string name_;
  const tvm_abi::Function function_;
};

// A function object of TVM's runtime, on the threads of TVM.
class ObjectFunction : public ForeignFunction {
 public:
  // `serial`, if any, is held by each call: for functions of one virtual machine, which has the
  // registers of one call. Recursive: a function may run TensorFlow's ops, and so call itself.
  ObjectFunction(std::string name, tvm_ffi::Value function,
                 std::shared_ptr<std::recursive_mutex> serial)
      : name_(std::move(name)), function_(std::move(function)), serial_(std::move(serial)) {}

  absl::Status Fill(const tvm_abi::Host& host, const Inputs& inputs,
                    const Outputs& outputs) const override;
  absl::Status FillOn(const DeviceStream& stream, const Inputs& inputs,
                      const Outputs& outputs) const override;
  absl::Status Run(const tvm_abi::Host& host,
                   absl::Span<const tvm_abi::Any> tensors) const override;
  absl::StatusOr<std::vector<tensorflow::Tensor>> Make(
      const Inputs& inputs, absl::Span<const tensorflow::DataType> dtypes) const override;
  bool may_keep_tensors() const override { return true; }

 private:
  absl::StatusOr<tvm_ffi::Value> Call(const Inputs& inputs, const Outputs& outputs,
                                      tvm_abi::Device device) const;
  absl::StatusOr<tvm_ffi::Value> Call(absl::Span<const tvm_abi::Any> arguments) const;

  const std::string name_;
  const tvm_ffi::Value function_;
  const std::shared_ptr<std::recursive_mutex> serial_;
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_FUNCTION_H_
