#include "composite/runtime/foreign/tvm_ffi.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "composite/runtime/base/fork_mutex.h"
#include "composite/runtime/foreign/dlpack.h"
#include "composite/runtime/run/kernel_call.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace composite {
namespace tvm_ffi {
namespace {

using tvm_abi::Any;

struct ByteArray {  // TVMFFIByteArray
  const char* data;
  size_t size;
};

struct ObjectHeader {  // TVMFFIObject
  uint64_t references;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
};
static_assert(sizeof(ObjectHeader) == 24, "TVMFFIObject");

struct ErrorCell {  // the begin of TVMFFIErrorCell
  ByteArray kind;
  ByteArray message;
};

struct SequenceCell {  // the begin of TVMFFISeqCell
  const Any* data;
  int64_t size;
};

struct ShapeCell {  // TVMFFIShapeCell
  const int64_t* dims;
  size_t size;
};

struct ManagedTensor {  // DLManagedTensor
  tvm_abi::Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);
};

struct Version {  // TVMFFIVersion
  uint32_t major, minor, patch;
};
constexpr uint32_t kMajor = 0, kMinor = 1;

using SafeCall = int (*)(void* self, const Any*, int32_t, Any*);  // TVMFFISafeCallType

struct Api {
  void (*get_version)(Version*);
  int (*increase)(void*);
  int (*decrease)(void*);
  int (*get_global)(const ByteArray*, void**);
  int (*set_global)(const ByteArray*, void*, int allow_override);
  int (*create_function)(void* self, SafeCall, void (*deleter)(void* self), void**);
  int (*call)(void*, const Any*, int32_t, Any*);
  void (*take_error)(void**);
  void (*raise)(const char* kind, const char* message);
  void (*raise_parts)(const char* kind, const char** parts, int32_t count);
  int32_t (*type_index)(const ByteArray* key, int32_t fixed, int32_t depth, int32_t children,
                        int32_t more_children, int32_t parent);
  int (*from_dlpack)(ManagedTensor*, int32_t, int32_t, void**);
  int (*set_stream)(int32_t, int32_t, void*, void**);
};

Api api;  // all null until Load

template <typename T>
const T& After(const void* object) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(object) + sizeof(ObjectHeader));
}

template <typename F>
bool Resolve(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  return *function != nullptr;
}

absl::Status ResolveAll(void* library) {
  Api found;
  const bool complete = Resolve(library, "TVMFFIGetVersion", &found.get_version) &&
                        Resolve(library, "TVMFFIObjectIncRef", &found.increase) &&
                        Resolve(library, "TVMFFIObjectDecRef", &found.decrease) &&
                        Resolve(library, "TVMFFIFunctionGetGlobal", &found.get_global) &&
                        Resolve(library, "TVMFFIFunctionSetGlobal", &found.set_global) &&
                        Resolve(library, "TVMFFIFunctionCreate", &found.create_function) &&
                        Resolve(library, "TVMFFIFunctionCall", &found.call) &&
                        Resolve(library, "TVMFFIErrorMoveFromRaised", &found.take_error) &&
                        Resolve(library, "TVMFFIErrorSetRaisedFromCStr", &found.raise) &&
                        Resolve(library, kRaiseParts, &found.raise_parts) &&
                        Resolve(library, "TVMFFITypeGetOrAllocIndex", &found.type_index) &&
                        Resolve(library, "TVMFFITensorFromDLPack", &found.from_dlpack) &&
                        Resolve(library, "TVMFFIEnvSetStream", &found.set_stream);
  Version version{};
  if (complete) found.get_version(&version);
  if (!complete || version.major != kMajor || version.minor != kMinor) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the libtvm_ffi.so of this process is version ", version.major, ".", version.minor,
        ", not ", kMajor, ".", kMinor, ": install apache-tvm-ffi ", kMajor, ".", kMinor));
  }
  api = found;
  return absl::OkStatus();
}

// What is mapped under this name already, or else the file, or for a mere name what the linker
// finds.
absl::StatusOr<void*> Open(const char* name, const std::string& path) {
  if (void* mapped = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return mapped;
  if (path.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it needs ", name, " of TVM, which is not installed here: pip install apache-tvm"));
  }
  // GLOBAL: the libraries that TVM loads name none as needed.
  if (void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return opened;
  const char* why = dlerror();
  const bool is_searched = path.find('/') == std::string::npos;
  return absl::FailedPreconditionError(
      absl::StrCat(path, " does not load: ", why != nullptr ? why : "no reason given",
                   is_searched ? ": link the program with it, or set LD_LIBRARY_PATH" : ""));
}

// The error that this thread has raised.
tvm_abi::Error TakeError() {
  void* object = nullptr;
  api.take_error(&object);
  if (object == nullptr) return {"RuntimeError", "it failed and gave no reason"};
  const auto& cell = After<ErrorCell>(object);
  tvm_abi::Error error{std::string(cell.kind.data, cell.kind.size),
                       std::string(cell.message.data, cell.message.size)};
  api.decrease(object);
  return error;
}

// A tensor of TensorFlow as TVM holds it.
struct Held {
  ManagedTensor managed;
  tensorflow::Tensor tensor;
  absl::InlinedVector<int64_t, 4> dims, strides;
};

// A tensor of TensorFlow as an object that TVM passes on.
struct Opaque {
  ObjectHeader header;
  tensorflow::Tensor tensor;
};

int32_t OpaqueType() {
  constexpr char kKey[] = "composite.Tensor";
  const ByteArray key{kKey, sizeof(kKey) - 1};
  static const int32_t index = api.type_index(&key, -1, 1, 0, 0, kFirstObject);
  return index;
}

// An object ends when nobody has it any more, its memory when nobody remembers it either.
void DeleteOpaque(void* self, int flags) {
  constexpr int kEnd = 1, kFree = 2;
  auto* const opaque = static_cast<Opaque*>(self);
  if ((flags & kEnd) != 0) opaque->tensor = tensorflow::Tensor();
  if ((flags & kFree) != 0) delete opaque;
}

int RunCallback(void* self, const Any* arguments, int32_t count, Any* result) {
  absl::Status status;
  try {
    absl::StatusOr<Value> made =
        (*static_cast<Callback*>(self))(absl::MakeConstSpan(arguments, count));
    if (made.ok()) {
      *result = made->Release();
      return 0;
    }
    status = made.status();
  } catch (const std::exception& error) {
    status = absl::InternalError(error.what());
  }
  api.raise("RuntimeError", std::string(status.message()).c_str());
  return -1;
}

void RaiseForBoth(const char* kind, const char** parts, int32_t count) {
  api.raise_parts(kind, parts, count);
  tvm_abi::RaiseParts(kind, parts, count);
}

absl::StatusOr<Value> FindGlobal(absl::string_view name) {
  const ByteArray key{name.data(), name.size()};
  Any any{kFunction, 0, {0}};
  if (api.get_global(&key, &any.v_ptr) != 0) return KernelError(name, TakeError());
  return any.v_ptr != nullptr ? Value(any) : Value();
}

}  // namespace

absl::Status Load(const Libraries& libraries, bool with_runtime) {
  static auto* const mu = new ForkMutex;
  absl::MutexLock lock(*mu);
  if (api.call == nullptr) {
    TF_ASSIGN_OR_RETURN(void* library, Open("libtvm_ffi.so", libraries.ffi));
    TF_RETURN_IF_ERROR(ResolveAll(library));
  }
  return with_runtime ? Open("libtvm_runtime.so", libraries.runtime).status() : absl::OkStatus();
}

absl::Status LoadCuda(const Libraries& libraries) {
  TF_RETURN_IF_ERROR(Load(libraries, /*with_runtime=*/true));
  return Open("libtvm_runtime_cuda.so", libraries.cuda).status();
}

StreamScope::StreamScope(tvm_abi::Device device, void* stream) : device_(device) {
  api.set_stream(device.type, device.id, stream, &before_);
}

StreamScope::~StreamScope() { api.set_stream(device_.type, device_.id, before_, nullptr); }

Value Value::Shared(void* object) {
  api.increase(object);
  Any any{static_cast<const ObjectHeader*>(object)->type_index, 0, {0}};
  any.v_ptr = object;
  return Value(any);
}

absl::StatusOr<Value> Value::OfTensor(const tensorflow::Tensor& tensor, tvm_abi::Device device) {
  auto held = std::make_unique<Held>();
  held->tensor = tensor;
  held->dims = tensor.shape().dim_sizes();
  held->strides.resize(held->dims.size());
  int64_t stride = 1;
  for (size_t i = held->dims.size(); i-- > 0; stride *= held->dims[i]) held->strides[i] = stride;
  held->managed = {DescribeTensor(tensor, held->dims.data(), device), held.get(),
                   [](ManagedTensor* self) { delete static_cast<Held*>(self->context); }};
  held->managed.tensor.strides = held->strides.data();
  Any any{kTensor, 0, {0}};
  if (api.from_dlpack(&held->managed, 0, 0, &any.v_ptr) != 0) {
    return KernelError("TVMFFITensorFromDLPack", TakeError());
  }
  held.release();  // the tensor's deleter has it
  return Value(any);
}

Value Value::OfOpaque(const tensorflow::Tensor& tensor) {
  constexpr uint64_t kOneOfEach = (uint64_t{1} << 32) | 1;  // weak and strong references
  Any any{OpaqueType(), 0, {0}};
  any.v_ptr = new Opaque{{kOneOfEach, any.type_index, 0, &DeleteOpaque}, tensor};
  return Value(any);
}

absl::StatusOr<Value> Value::OfFunction(Callback callback) {
  auto held = std::make_unique<Callback>(std::move(callback));
  const auto deleter = [](void* self) { delete static_cast<Callback*>(self); };
  Any any{kFunction, 0, {0}};
  if (api.create_function(held.get(), &RunCallback, deleter, &any.v_ptr) != 0) {
    return KernelError("TVMFFIFunctionCreate", TakeError());
  }
  held.release();  // the function's deleter has it
  return Value(any);
}

Value::~Value() {
  if (any_.type_index >= kFirstObject) api.decrease(any_.v_ptr);
}

const tvm_abi::Tensor& Value::tensor() const { return TensorOf(any_); }

absl::Span<const Any> Value::elements() const {
  const auto& cell = After<SequenceCell>(any_.v_ptr);
  return absl::MakeConstSpan(cell.data, cell.size);
}

Any Int(int64_t value) { return {tvm_ffi::kInt, 0, {value}}; }

Any String(const char* text) {
  Any any{kRawString, 0, {0}};
  any.v_ptr = const_cast<char*>(text);
  return any;
}

const tvm_abi::Tensor& TensorOf(const Any& tensor) { return After<tvm_abi::Tensor>(tensor.v_ptr); }

absl::StatusOr<Value> Call(absl::string_view name, const Value& function,
                           absl::Span<const Any> arguments) {
  Any result{tvm_abi::kNone, 0, {0}};
  try {
    const int count = static_cast<int>(arguments.size());
    if (api.call(function.any().v_ptr, arguments.data(), count, &result) == 0) {
      return Value(result);
    }
  } catch (const std::exception& error) {
    return KernelError(name, {"RuntimeError", absl::StrCat("it threw: ", error.what())});
  } catch (...) {
    return KernelError(name, {"RuntimeError", "it threw what is no std::exception"});
  }
  return KernelError(name, TakeError());
}

absl::StatusOr<Value> CallGlobal(absl::string_view name, absl::Span<const Any> arguments) {
  TF_ASSIGN_OR_RETURN(const Value function, FindGlobal(name));
  if (function.type() == tvm_abi::kNone) {
    return absl::NotFoundError(absl::StrCat("this TVM has no function ", name));
  }
  return Call(name, function, arguments);
}

absl::StatusOr<Value> ArrayOf(absl::Span<const Any> values) {
  // Whoever finds a function in TVM's table counts a reference to it: this one is kept.
  static const auto* const make = new absl::StatusOr<Value>(FindGlobal("ffi.Array"));
  TF_RETURN_IF_ERROR(make->status());
  return Call("ffi.Array", **make, values);
}

const tensorflow::Tensor* OpaqueOf(const Any& value) {
  if (value.type_index != OpaqueType()) return nullptr;
  return &static_cast<const Opaque*>(value.v_ptr)->tensor;
}

absl::Span<const int64_t> ShapeOf(const Any& value) {
  if (value.type_index != kShape) return {};
  const auto& cell = After<ShapeCell>(value.v_ptr);
  return absl::MakeConstSpan(cell.dims, cell.size);
}

tvm_abi::DataType DtypeOf(const Any& dtype) {
  tvm_abi::DataType found;
  std::memcpy(&found, &dtype.v_int64, sizeof(found));
  return found;
}

absl::string_view TextOf(const Any& value) {
  switch (value.type_index) {
    case kRawString:
      return static_cast<const char*>(value.v_ptr);
    case kSmallString:  // its length is in the place of the padding
      return {reinterpret_cast<const char*>(&value.v_int64), value.zero_padding};
    case kString: {
      const auto& text = After<ByteArray>(value.v_ptr);
      return {text.data, text.size};
    }
    default:
      return "";
  }
}

GlobalScope::GlobalScope(const char* name, Callback callback) : name_(name) {
  absl::StatusOr<Value> before = FindGlobal(name);
  absl::StatusOr<Value> function = Value::OfFunction(std::move(callback));
  status_ = before.ok() ? function.status() : before.status();
  if (!status_.ok()) return;
  before_ = *std::move(before);
  const ByteArray key{name, std::strlen(name)};
  if (api.set_global(&key, function->any().v_ptr, /*allow_override=*/1) != 0) {
    status_ = KernelError(name, TakeError());
  }
}

GlobalScope::~GlobalScope() {
  if (!status_.ok()) return;
  if (before_.type() == tvm_abi::kNone) {
    const Any arguments[] = {String(name_)};
    CallGlobal("ffi.FunctionRemoveGlobal", arguments).IgnoreError();
    return;
  }
  const ByteArray key{name_, std::strlen(name_)};
  if (api.set_global(&key, before_.any().v_ptr, /*allow_override=*/1) != 0) TakeError();
}

const void* RaiseParts() { return reinterpret_cast<const void*>(&RaiseForBoth); }

}  // namespace tvm_ffi
}  // namespace composite
