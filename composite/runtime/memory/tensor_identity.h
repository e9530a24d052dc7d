// The identity of a tensor's memory, and who may write to it: the one rule by which tensors of
// different calls count as the same, and by which a kernel may write over an input.
#ifndef COMPOSITE_RUNTIME_MEMORY_TENSOR_IDENTITY_H_
#define COMPOSITE_RUNTIME_MEMORY_TENSOR_IDENTITY_H_

#include <cstddef>
#include <utility>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// Which memory a tensor reads, and how: the root buffer that owns the memory (a slice shares that
// of the whole tensor), the address, dtype and shape. Two live tensors with equal identities have
// the same elements. An allocator may reuse the memory of a destroyed tensor, so what is remembered
// by identity alone is a guess; a HeldTensor is certain.
class TensorIdentity {
 public:
  explicit TensorIdentity(const tensorflow::Tensor& tensor);

  bool Matches(const tensorflow::Tensor& tensor) const;

  bool operator==(const TensorIdentity& other) const {
    return address_ == other.address_ && root_ == other.root_ && dtype_ == other.dtype_ &&
           shape_ == other.shape_;
  }
  template <typename H>
  friend H AbslHashValue(H state, const TensorIdentity& identity) {
    return H::combine(std::move(state), identity.address_, identity.root_, identity.dtype_);
  }

 private:
  const tensorflow::TensorBuffer* root_;
  const void* address_;
  tensorflow::DataType dtype_;
  tensorflow::TensorShape shape_;
};

// Whether the elements of a tensor cannot change while a reference to it is held. TensorFlow and
// this runtime write to a buffer only if nobody else holds it. False where another library may
// write to the memory (arrays shared by DLPack, exports.h) and where the process has ops that write
// regardless (inplace_ops.h).
bool IsImmutableWhileHeld(const tensorflow::Tensor& tensor);

// Sets the test of whether memory that TensorFlow does not own is reachable through its buffer
// alone. Without a test, no such memory is.
void SetPrivateBufferTest(bool (*is_private)(const tensorflow::TensorBuffer& root));

// A tensor that is remembered between calls. While it lives, no other tensor gets its identity, and
// if it IsImmutableWhileHeld, its elements stay.
class HeldTensor {
 public:
  explicit HeldTensor(const tensorflow::Tensor& tensor) : tensor_(tensor), identity_(tensor) {}

  // Whether a tensor has the elements that this one had when it was remembered.
  bool Matches(const tensorflow::Tensor& now) const {
    return identity_.Matches(now) && IsImmutableWhileHeld(now);
  }

  const tensorflow::Tensor& tensor() const { return tensor_; }
  const TensorIdentity& identity() const { return identity_; }

 private:
  tensorflow::Tensor tensor_;
  TensorIdentity identity_;
};

// Whether `tensors` tensors of this very buffer hold all references to its memory, inside and
// outside of TensorFlow, so that their holder may write there.
bool IsExclusive(const tensorflow::TensorBuffer& buffer, int tensors);

// Whether a node may compute a result in the memory of an input that nobody else holds: TensorFlow
// owns the memory, which is aligned to `alignment`, a power of two. OpKernelContext's forwarding
// decides whether somebody else holds it.
bool MayReuseForResult(const tensorflow::Tensor& tensor, size_t alignment);

// Whether two tensors are the same part of the same buffer.
bool IsSameMemory(const tensorflow::Tensor& one, const tensorflow::Tensor& other);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_TENSOR_IDENTITY_H_
