#include "composite/runtime/memory/tensor_identity.h"

#include <atomic>
#include <cstdint>

#include "composite/runtime/memory/exports.h"
#include "composite/runtime/memory/inplace_ops.h"
#include "tensorflow/core/common_runtime/dma_helper.h"

namespace composite {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorBuffer;

using IsPrivate = bool (*)(const TensorBuffer& root);

std::atomic<IsPrivate> is_private{nullptr};

// Null for a tensor without elements. TensorFlow 2.21 keeps the buffer of a tensor to itself but
// for DMAHelper, and has root_buffer() change nothing.
TensorBuffer* BufferOf(const Tensor& tensor) {
  return const_cast<TensorBuffer*>(tensorflow::DMAHelper::buffer(&tensor));
}

TensorBuffer* RootOf(const Tensor& tensor) {
  TensorBuffer* const buffer = BufferOf(tensor);
  return buffer == nullptr ? nullptr : buffer->root_buffer();
}

}  // namespace

TensorIdentity::TensorIdentity(const Tensor& tensor)
    : root_(RootOf(tensor)),
      address_(tensor.data()),
      dtype_(tensor.dtype()),
      shape_(tensor.shape()) {}

bool TensorIdentity::Matches(const Tensor& tensor) const {
  return address_ == tensor.data() && root_ == RootOf(tensor) && dtype_ == tensor.dtype() &&
         shape_ == tensor.shape();
}

// A slice says that it owns its memory even where the buffer that it is a part of does not.
bool IsImmutableWhileHeld(const Tensor& tensor) {
  const TensorBuffer* const root = RootOf(tensor);
  if (root == nullptr) return true;
  if (HasInplaceOps() || IsExported(*root)) return false;
  if (root->OwnsMemory()) return true;
  const IsPrivate known = is_private.load(std::memory_order_acquire);
  return known != nullptr && known(*root);
}

void SetPrivateBufferTest(IsPrivate known) { is_private.store(known, std::memory_order_release); }

// A slice holds the buffer that it is a part of, once.
bool IsExclusive(const TensorBuffer& buffer, int tensors) {
  auto* const root = const_cast<TensorBuffer&>(buffer).root_buffer();
  return buffer.RefCount() == tensors && (root == &buffer || root->RefCountIsOne()) &&
         root->OwnsMemory();
}

bool MayReuseForResult(const Tensor& tensor, size_t alignment) {
  const TensorBuffer* const root = RootOf(tensor);
  const auto address = reinterpret_cast<uintptr_t>(tensor.data());
  return root != nullptr && root->OwnsMemory() && (address & (alignment - 1)) == 0;
}

bool IsSameMemory(const Tensor& one, const Tensor& other) {
  return RootOf(one) != nullptr && RootOf(one) == RootOf(other) && one.data() == other.data() &&
         one.TotalBytes() == other.TotalBytes();
}

}  // namespace composite
