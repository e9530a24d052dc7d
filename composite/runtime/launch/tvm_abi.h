// The host side of the C ABI that TVM compiles kernels for (TVM 0.27, tvm-ffi 0.1.14): what a
// kernel is called with, and the functions that it expects of its host. The only file that knows
// this ABI; it knows nothing of TensorFlow, so that a small program can drive a kernel without it.
//
// The structs repeat those of <tvm/ffi/c_api.h> and <dlpack/dlpack.h>, so that the runtime is built
// without TVM installed; tests/runtime/harness/tvm_abi_test.cc compares them.
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

// A compiled kernel, the C symbol `__tvm_ffi_<name>`: 0, or an error that it has raised.
using Function = int (*)(void* self, const Any* args, int32_t num_args, Any* result);

// What compiled code may ask of the address of memory that it did not allocate, in bytes.
inline constexpr size_t kAlignment = 64;

inline bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
}

// At least so many bytes of the C++ heap, for std::free, aligned so; null when there is no memory.
void* AllocateAligned(size_t bytes);

// Where a kernel gets its temporary buffers. Called from any thread.
class Workspace {
 public:
  virtual ~Workspace() = default;
  // Aligned to kAlignment; null when there is no memory.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* block) = 0;
};

// What a kernel runs on; all of these may be null (one thread; the C++ heap).
struct Host {
  Pool* pool = nullptr;
  Workspace* workspace = nullptr;
  // False: no loop of the kernel has a barrier, whatever else its library holds.
  bool barriers = true;
  // In place of the pool: every loop runs on all threads of this team at once. Its loops are not
  // counted.
  FixedTeam* team = nullptr;
};

struct Error {
  std::string kind;  // "TypeError", "ValueError", ... as the kernel named it
  std::string message;
};

// Calls `function` on `tensors`, inputs and then outputs. False and *error when the kernel raises
// or throws, on this thread or on one of the pool's. Whatever workspace it holds then is freed.
bool Call(Function function, const Host& host, Tensor* tensors, int count, Error* error);

// The addresses of a library's slots; null where the library does not have one. A library has a
// slot exactly when its code uses it: with a barrier, its loops are launched as teams, but for
// those of kernels that are called without.
struct Slots {
  void** parallel_launch = nullptr;
  void** parallel_barrier = nullptr;
  void** alloc_workspace = nullptr;
  void** free_workspace = nullptr;
};

// Must be called before any function of the library.
void FillSlots(const Slots& slots);

// Names of the slots, and of a kernel's symbol before its own name.
inline constexpr char kParallelLaunch[] = "__TVMBackendParallelLaunch";
inline constexpr char kParallelBarrier[] = "__TVMBackendParallelBarrier";
inline constexpr char kAllocWorkspace[] = "__TVMBackendAllocWorkspace";
inline constexpr char kFreeWorkspace[] = "__TVMBackendFreeWorkspace";
inline constexpr char kSymbolPrefix[] = "__tvm_ffi_";

// Notes the error of a kernel that will return nonzero.
void RaiseParts(const char* kind, const char** parts, int32_t count);

}  // namespace tvm_abi
}  // namespace composite

// RaiseParts by the one name that compiled kernels import. Its address may be that of TVM's
// function of this name, where a process has mapped that first.
extern "C" __attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStrParts(
    const char* kind, const char** parts, int32_t count);

#endif  // COMPOSITE_RUNTIME_LAUNCH_TVM_ABI_H_
