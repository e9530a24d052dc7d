#include "composite/runtime/standalone/python_array.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace composite {
namespace standalone {
namespace {

constexpr char kCapsule[] = "dltensor";
constexpr uint8_t kComplex = 5;

// A format of Python's struct, of one element in native order. Code 0xff: another.
tvm_abi::DataType DtypeOf(const char* format, Py_ssize_t itemsize) {
  const auto bits = static_cast<uint8_t>(8 * itemsize);
  if (format == nullptr) return {tvm_abi::kUInt, 8, 1};
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == 'Z') return {kComplex, bits, 1};
  const char kind = format[0] != 0 && format[1] == 0 ? format[0] : 0;
  switch (kind) {
    case '?':
      return {tvm_abi::kBool, 8, 1};
    case 'e':
    case 'f':
    case 'd':
      return {tvm_abi::kFloat, bits, 1};
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return {tvm_abi::kInt, bits, 1};
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return {tvm_abi::kUInt, bits, 1};
    default:
      return {0xff, bits, 1};
  }
}

void FreeMemory(ManagedTensor* managed) {
  std::free(managed->tensor.data);
  delete[] managed->tensor.shape;
  delete managed;
}

// Of a capsule that nobody has taken: whoever takes one renames it.
void FreeCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kCapsule) == 0) return;
  auto* managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule));
  managed->deleter(managed);
}

}  // namespace

HeldArray::~HeldArray() {
  if (has_buffer_) InPython(PyBuffer_Release, &buffer_);
}

bool HeldArray::HoldBuffer(PyObject* array, bool writable) {
  const int flags = kBufferStrides | kBufferFormat | (writable ? kBufferWritable : 0);
  if (InPython(PyObject_GetBuffer, array, &buffer_, flags) != 0) return false;
  has_buffer_ = true;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "dims are 64 bits");
  tensor_ = {buffer_.buf,
             {tvm_abi::kCpu, 0},
             buffer_.ndim,
             DtypeOf(buffer_.format, buffer_.itemsize),
             reinterpret_cast<int64_t*>(buffer_.shape),
             nullptr,
             0};
  int64_t expected = buffer_.itemsize;
  for (int d = buffer_.ndim - 1; d >= 0 && strides_.empty(); --d) {
    if (buffer_.shape[d] != 1 && buffer_.strides[d] != expected) strides_.resize(buffer_.ndim);
    expected *= buffer_.shape[d];
  }
  // In bytes there, in elements here; parts of elements are a stride that no compact array has.
  for (size_t d = 0; d < strides_.size(); ++d) {
    const bool whole = buffer_.strides[d] % buffer_.itemsize == 0;
    strides_[d] = whole ? buffer_.strides[d] / buffer_.itemsize : -1;
  }
  if (!strides_.empty()) tensor_.strides = strides_.data();
  return true;
}

bool HeldArray::HoldCapsule(Object capsule) {
  if (!capsule) return false;
  auto* managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule.get(), kCapsule));
  if (managed == nullptr) return false;
  // It is not renamed: its destructor then frees the tensor when the capsule goes.
  capsule_ = std::move(capsule);
  tensor_ = managed->tensor;
  return true;
}

void HeldArray::SetDtype(uint32_t key) {
  tensor_.dtype = {static_cast<uint8_t>(key), static_cast<uint8_t>(key >> 8), 1};
}

Object NewCapsule(uint32_t dtype, const int64_t* dims, int rank, Tensor* tensor) {
  size_t bytes = dtype >> 8 >> 3;
  for (int d = 0; d < rank; ++d) bytes *= dims[d];
  void* memory = tvm_abi::AllocateAligned(bytes);
  auto* shape = new (std::nothrow) int64_t[rank + 1];
  auto* managed = new (std::nothrow) ManagedTensor{};
  if (memory == nullptr || shape == nullptr || managed == nullptr) {
    std::free(memory);
    delete[] shape;
    delete managed;
    PyErr_SetString(PyExc_MemoryError, "no memory for an output");
    return Object();
  }
  std::copy_n(dims, rank, shape);
  const tvm_abi::DataType type{static_cast<uint8_t>(dtype), static_cast<uint8_t>(dtype >> 8), 1};
  managed->tensor = {memory, {tvm_abi::kCpu, 0}, rank, type, shape, nullptr, 0};
  managed->deleter = FreeMemory;
  Object capsule(PyCapsule_New(managed, kCapsule, FreeCapsule));
  if (!capsule) FreeMemory(managed);
  *tensor = managed->tensor;
  return capsule;
}

}  // namespace standalone
}  // namespace composite
