// Whose memory a tensor is, and which part of it: the one rule by which tensors of different calls
// are taken for the same, and by which somebody may write to memory that was given to him.
#ifndef COMPOSITE_RUNTIME_MEMORY_PLACE_H_
#define COMPOSITE_RUNTIME_MEMORY_PLACE_H_

#include <cstddef>
#include <utility>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace composite {

// Which memory a tensor has, and how it is read: the buffer that owns it (a slice has a part of
// another tensor's), the address in there, dtype and shape. Of two tensors that are alive at the
// same time, equal places are the same numbers. The place of a tensor that is gone may be given to
// another one: what is remembered by its place has to be a Kept, or no more than a guess.
class Place {
 public:
  explicit Place(const tensorflow::Tensor& tensor);

  bool IsOf(const tensorflow::Tensor& tensor) const;

  bool operator==(const Place& other) const {
    return address_ == other.address_ && root_ == other.root_ && dtype_ == other.dtype_ &&
           shape_ == other.shape_;
  }
  template <typename H>
  friend H AbslHashValue(H state, const Place& place) {
    return H::combine(std::move(state), place.address_, place.root_, place.dtype_);
  }

 private:
  const tensorflow::TensorBuffer* root_;
  const void* address_;
  tensorflow::DataType dtype_;
  tensorflow::TensorShape shape_;
};

// Whether the numbers of a tensor stay what they are as long as somebody holds it who does not
// write: TensorFlow and this runtime write to a buffer only if nobody else holds it. Not so where
// the memory is another library's, as an array's that came by DLPack, and where ops of this process
// write whoever holds the buffer (blind_writes.h).
bool StaysWhileHeld(const tensorflow::Tensor& tensor);

// Sets what says of a buffer whose memory TensorFlow does not own that nobody can write to it but
// by the buffer. Without it, none is such.
void SetIsPrivate(bool (*is_private)(const tensorflow::TensorBuffer& root));

// A tensor that is remembered from call to call. While this lives, no other tensor gets its place,
// and if it StaysWhileHeld, nobody writes to it.
class Kept {
 public:
  explicit Kept(const tensorflow::Tensor& tensor) : tensor_(tensor), place_(tensor) {}

  // Whether a tensor has the numbers that this one had when it was remembered.
  bool Is(const tensorflow::Tensor& now) const { return place_.IsOf(now) && StaysWhileHeld(now); }

  const tensorflow::Tensor& tensor() const { return tensor_; }
  const Place& place() const { return place_; }

 private:
  tensorflow::Tensor tensor_;
  Place place_;
};

// Whether so many tensors that have this very buffer are all that have its memory or a part of it,
// inside and outside of TensorFlow. Who has the tensors may write there.
bool IsHeldBy(const tensorflow::TensorBuffer& buffer, int tensors);

// Whether a node that is given a tensor may compute its result there, if nobody else holds it: the
// memory is TensorFlow's, and lies at a multiple of `alignment`, a power of two. Whether somebody
// else does, TensorFlow says where it forwards an input (OpKernelContext).
bool MayHoldResult(const tensorflow::Tensor& tensor, size_t alignment);

// Whether two tensors are the same part of the same memory.
bool AreSameMemory(const tensorflow::Tensor& one, const tensorflow::Tensor& other);

}  // namespace composite

#endif  // COMPOSITE_RUNTIME_MEMORY_PLACE_H_
