// Tensors of a call on a GPU that TensorFlow keeps in the host's memory, as it does with int32: how
// a kernel gets them, and gives them back. The stream copies; the host does not wait for it.
#ifndef COMPOSITE_RUNTIME_RUN_HOST_TENSORS_H_
#define COMPOSITE_RUNTIME_RUN_HOST_TENSORS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {

// Calls `done` when the stream of a call has done what it was given so far: outputs in the host's
// memory are there then. Of an error the stream waits for itself, and `done` is called all the
// same.
void WhenStreamIsDone(tensorflow::OpKernelContext* context, std::function<void()> done);

// Of one call, whose outputs are allocated. What it allocates on the device is given back with it:
// TensorFlow gives that memory to later work of the same stream only.
class HostTensors {
 public:
  explicit HostTensors(tensorflow::OpKernelContext* context) : context_(context) {}
  ~HostTensors();
  HostTensors(const HostTensors&) = delete;
  HostTensors& operator=(const HostTensors&) = delete;

  // Where on the device the kernel reads an input, and writes an output.
  absl::StatusOr<void*> Input(int index);
  absl::StatusOr<void*> Output(int index);

  // Copies the outputs in the host's memory there, behind the kernel.
  absl::Status CopyOutputs();

 private:
  absl::StatusOr<void*> Allocate(const tensorflow::Tensor& like);

  tensorflow::OpKernelContext* const context_;
  std::vector<tensorflow::Tensor> on_device_;
  std::vector<tensorflow::Tensor> sources_;     // of copies that the stream may not have done yet
  std::vector<std::pair<int, void*>> outputs_;  // that lie in the host's memory, and their places
};

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_RUN_HOST_TENSORS_H_
