// Which tensors have the memory of an array of NumPy's that nobody but the tensor has: TensorFlow
// makes tensors of arrays without copying them where they are aligned, of a copy of its own if the
// user has the array.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <typeinfo>

#include "composite/runtime/base/python_abi.h"
#include "composite/runtime/memory/exports.h"
#include "composite/runtime/memory/tensor_identity.h"
#include "composite/runtime/python/eager_tensors.h"
#include "tensorflow/c/tf_tensor_internal.h"

namespace composite {
namespace {

using Deallocator = void (*)(void* data, size_t size, void* argument);

// TensorFlow 2.21 keeps to itself what releases the memory of a buffer. That of an array is
// released by a function of its Python extension, whose argument is the array. An explicit
// instantiation may name private members.
template <auto deallocator, auto argument>
struct Access {
  friend Deallocator DeallocatorOf(const TF_ManagedBuffer& buffer) { return buffer.*deallocator; }
  friend void* ArgumentOf(const TF_ManagedBuffer& buffer) { return buffer.*argument; }
};
Deallocator DeallocatorOf(const TF_ManagedBuffer& buffer);
void* ArgumentOf(const TF_ManagedBuffer& buffer);
template struct Access<&TF_ManagedBuffer::deallocator_, &TF_ManagedBuffer::deallocator_arg_>;

constexpr char kExtension[] = "lib_pywrap_tensorflow_common.so";

// The layout is part of NumPy's ABI, and the beginning of CPython's.
struct Array {
  intptr_t references;
  const void* type;
  void* data;
  int dims;
  void* sizes;
  void* strides;
  const void* base;
  void* descr;
  int flags;
  const void* weak_references;
};
constexpr int kOwnsData = 0x4;  // NPY_ARRAY_OWNDATA

std::atomic<const void*> array_type{nullptr};
std::atomic<Deallocator> releases_arrays{nullptr};

bool IsOfExtension(Deallocator function) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(function), &info) == 0) return false;
  return info.dli_fname != nullptr && std::strstr(info.dli_fname, kExtension) != nullptr;
}

// The array that a buffer holds; null for other memory.
const Array* ArrayOf(const TF_ManagedBuffer& buffer) {
  const Deallocator deallocator = DeallocatorOf(buffer);
  const auto* const array = static_cast<const Array*>(ArgumentOf(buffer));
  if (deallocator == releases_arrays.load(std::memory_order_relaxed)) return array;
  if (array == nullptr || !IsOfExtension(deallocator)) return nullptr;
  if (array->type != array_type.load(std::memory_order_relaxed)) return nullptr;
  releases_arrays.store(deallocator, std::memory_order_relaxed);
  return array;
}

// Whoever could write to the array holds it, or an array that is based on it and does. That only
// the buffer does stays so: it gives it to nobody.
bool IsPrivateArray(const tensorflow::TensorBuffer& root) {
  if (typeid(root) != typeid(TF_ManagedBuffer)) return false;
  const Array* const array = ArrayOf(static_cast<const TF_ManagedBuffer&>(root));
  if (array == nullptr || array->type != array_type.load(std::memory_order_relaxed)) return false;
  return __atomic_load_n(&array->references, __ATOMIC_RELAXED) == 1 && array->base == nullptr &&
         (array->flags & kOwnsData) != 0 && array->weak_references == nullptr;
}

}  // namespace
}  // namespace composite

// Notes that another library is about to be given the memory of an eager tensor. Called by ctypes,
// with the GIL.
extern "C" __attribute__((visibility("default"))) void composite_python_note_export(
    PyObject* tensor) {
  if (!composite::FindEagerTensors().ok()) return;
  const tensorflow::Tensor* const found = composite::TensorIn(tensor);
  if (found != nullptr) composite::NoteExport(*found);
}

// `type`: numpy.ndarray. Called by ctypes, with the GIL.
extern "C" __attribute__((visibility("default"))) void composite_python_array_type(PyObject* type) {
  composite::array_type.store(type, std::memory_order_relaxed);
  composite::SetPrivateBufferTest(composite::IsPrivateArray);
}
