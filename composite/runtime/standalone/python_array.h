// Python's arrays as tensors: by the buffer protocol, and by DLPack. With the GIL.
#ifndef COMPOSITE_RUNTIME_STANDALONE_PYTHON_ARRAY_H_
#define COMPOSITE_RUNTIME_STANDALONE_PYTHON_ARRAY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/standalone/function.h"
#include "composite/runtime/standalone/table.h"

namespace composite {
namespace standalone {

// DLManagedTensor of <dlpack/dlpack.h>.
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

// An array that is held while its memory is used.
class HeldArray {
 public:
  HeldArray() = default;
  ~HeldArray();
  HeldArray(const HeldArray&) = delete;
  HeldArray& operator=(const HeldArray&) = delete;

  // By the buffer protocol. False, and Python has raised: BufferError or TypeError where the array
  // does not have it for its dtype.
  bool HoldBuffer(PyObject* array, bool writable);
  // By `array.__dlpack__()`, or what it gave.
  bool HoldCapsule(Object capsule);

  // The dtype of what is held as plain bits.
  void SetDtype(uint32_t key);

  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_{};
  Py_buffer buffer_{};
  bool has_buffer_ = false;
  Object capsule_;
  std::vector<int64_t> strides_;
};

// A capsule "dltensor" of new memory on the CPU, aligned to tvm_abi::kAlignment, which whoever
// takes it frees. Null, and Python has raised MemoryError.
Object NewCapsule(uint32_t dtype, const int64_t* dims, int rank, Tensor* tensor);

}  // namespace standalone
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_STANDALONE_PYTHON_ARRAY_H_
