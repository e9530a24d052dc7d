// The host side of the C ABI that TVM compiles kernels for (TVM 0.27, tvm-ffi 0.1.14): the
// arguments of a kernel, and the functions that a kernel calls in its host. Only this file knows
// the ABI. It does not depend on TensorFlow, so that a small program can call a kernel without it.
//
// The structs copy those of <tvm/ffi/c_api.h> and <dlpack/dlpack.h>, so that the runtime can be
// built without TVM; tests/runtime/harness/tvm_abi_test.cc compares them.
#ifndef COMPOSITE_RUNTIME_LAUNCH_TVM_ABI_H_
#define COMPOSITE_RUNTIME_LAUNCH_TVM_ABI_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "composite/runtime/launch/pool.h"

namespace composite {

class FixedTeam;

namespace tvm_abi {

// DLDataType. Codes: DLDataTypeCode.
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
enum DataTypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

// DLDevice.
struct Device {
  int32_t type;
  int32_t id;
};
enum DeviceType : int32_t { kCpu = 1, kCuda = 2 };

// DLTensor. Row-major and compact when `strides` is null.
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

// TVMFFIAny.
struct Any {
  int32_t type_index;
  uint32_t zero_padding;
  union {
    int64_t v_int64;
    void* v_ptr;
  };
};
enum TypeIndex : int32_t { kNone = 0, kTensorPtr = 7 };

// A compiled kernel, the C symbol `__tvm_ffi_<name>`. Returns 0, or nonzero if it raised an error.
using Function = int (*)(void* self, const Any* args, int32_t num_args, Any* result);

// The alignment in bytes that compiled code may assume of memory that it did not allocate.
inline constexpr size_t kAlignment = 64;

inline bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
}

// Allocates aligned memory on the C++ heap, which std::free releases. Null if there is none.
void* AllocateAligned(size_t bytes);

// Allocates the temporary buffers of kernels. Called from any thread.
class Workspace {
 public:
  virtual ~Workspace() = default;
  // Aligned to kAlignment; null if there is no memory.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* block) = 0;
};

// What a kernel runs on. Without a pool it runs on one thread, without a workspace it uses the C++
// heap.
struct Host {
  Pool* pool = nullptr;
  Workspace* workspace = nullptr;
  // False if no loop of this kernel has a barrier, even if other kernels of its library have one.
  bool barriers = true;
  // Replaces the pool: every loop runs on all threads of this team at once. Such loops are not
  // counted.
  FixedTeam* team = nullptr;
};

struct Error {
  std::string kind;  // as the kernel named it: "TypeError", "ValueError", ...
  std::string message;
};

// Calls `function` on `tensors`, the inputs followed by the outputs. Returns false and sets *error
// if the kernel raises an error or throws, on this thread or on one of the pool. The workspace that
// the kernel holds is freed.
bool Call(Function function, const Host& host, Tensor* tensors, int count, Error* error);

// The addresses of the slots of a library, null for those that it does not have. A library has a
// slot if and only if its code uses it. If it has the slot of barriers, its loops are launched as
// teams, unless the call says that the kernel has no barrier.
struct Slots {
  void** parallel_launch = nullptr;
  void** parallel_barrier = nullptr;
  void** alloc_workspace = nullptr;
  void** free_workspace = nullptr;
};

// Must be called before any function of the library.
void FillSlots(const Slots& slots);

// The names of the slots, and the prefix of the symbol of a kernel.
inline constexpr char kParallelLaunch[] = "__TVMBackendParallelLaunch";
inline constexpr char kParallelBarrier[] = "__TVMBackendParallelBarrier";
inline constexpr char kAllocWorkspace[] = "__TVMBackendAllocWorkspace";
inline constexpr char kFreeWorkspace[] = "__TVMBackendFreeWorkspace";
inline constexpr char kSymbolPrefix[] = "__tvm_ffi_";

// Records the error of a kernel that is about to return nonzero.
void RaiseParts(const char* kind, const char** parts, int32_t count);

}  // namespace tvm_abi
}  // namespace composite

// RaiseParts under the only name that compiled kernels import. It may be TVM's function of the same
// name, if the process loaded that first.
extern "C" __attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStrParts(
    const char* kind, const char** parts, int32_t count);

#endif  // COMPOSITE_RUNTIME_LAUNCH_TVM_ABI_H_
