// libtvm_ffi, the library of TVM that keeps its objects (functions, modules, tensors), as far as it
// takes to call a function of it. It is mapped when somebody asks for the first such function; a
// process that calls compiled kernels alone never maps it.
//
// The structs repeat those of <tvm/ffi/c_api.h> of tvm-ffi 0.1, so that the runtime is built
// without TVM installed.
#ifndef COMPOSITE_RUNTIME_FOREIGN_TVM_FFI_H_
#define COMPOSITE_RUNTIME_FOREIGN_TVM_FFI_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "tensorflow/core/framework/tensor.h"

namespace composite {
namespace tvm_ffi {

// TVMFFITypeIndex, beyond tvm_abi's.
enum TypeIndex : int32_t {
  kInt = 1,
  kPointer = 4,
  kDataType = 5,
  kDevice = 6,
  kRawString = 8,
  kSmallString = 11,
  kFirstObject = 64,
  kString = 65,
  kFunction = 68,
  kShape = 69,
  kTensor = 70,
  kArray = 71,
  kModule = 73,
};

// Where TVM's libraries are, if nothing in the process has mapped them yet. By a mere name, they
// are where the linker looks for libraries.
struct Libraries {
  std::string ffi;      // libtvm_ffi.so
  std::string runtime;  // libtvm_runtime.so
  std::string cuda;     // libtvm_runtime_cuda.so, which needs CUDA's libcudart and libcuda
};

// As the linker finds them.
inline Libraries ByName() {
  return {"libtvm_ffi.so", "libtvm_runtime.so", "libtvm_runtime_cuda.so"};
}

// Maps libtvm_ffi, and `with_runtime` libtvm_runtime too, for the life of the process.
// FailedPrecondition where they are not to be had, or are of another version.
absl::Status Load(const Libraries& libraries, bool with_runtime);
// Maps libtvm_runtime_cuda too, after these.
absl::Status LoadCuda(const Libraries& libraries);

class Value;
// What a function object of this process does with its arguments. A failure is what it raises.
using Callback = std::function<absl::StatusOr<Value>(absl::Span<const tvm_abi::Any>)>;

// A value that owns what it refers to. Load comes before any other than None.
class Value {
 public:
  Value() = default;
  explicit Value(tvm_abi::Any any) : any_(any) {}  // takes the reference over
  // Another reference to an object that somebody else owns.
  static Value Shared(void* object);
  // A tensor of TVM on the memory of TensorFlow's, which it keeps, of a device.
  static absl::StatusOr<Value> OfTensor(const tensorflow::Tensor& tensor, tvm_abi::Device device);

  // An object of TVM that keeps a tensor as it is, of whatever dtype.
  static Value OfOpaque(const tensorflow::Tensor& tensor);
  static absl::StatusOr<Value> OfFunction(Callback callback);

  Value(Value&& other) noexcept : any_(std::exchange(other.any_, kNone)) {}
  Value& operator=(Value&& other) noexcept {
    std::swap(any_, other.any_);
    return *this;
  }
  ~Value();

  int32_t type() const { return any_.type_index; }
  const tvm_abi::Any& any() const { return any_; }
  // Hands the reference over.
  tvm_abi::Any Release() { return std::exchange(any_, kNone); }
  // Of a tensor.
  const tvm_abi::Tensor& tensor() const;
  // Of an array; they live as long as it does.
  absl::Span<const tvm_abi::Any> elements() const;

 private:
  static constexpr tvm_abi::Any kNone{tvm_abi::kNone, 0, {0}};

  tvm_abi::Any any_ = kNone;
};

// The stream of a device that functions of TVM use on this thread, as long as this object lives.
class StreamScope {
 public:
  StreamScope(tvm_abi::Device device, void* stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  const tvm_abi::Device device_;
  void* before_ = nullptr;
};

tvm_abi::Any Int(int64_t value);
tvm_abi::Any String(const char* text);  // as long as the text lives
const tvm_abi::Tensor& TensorOf(const tvm_abi::Any& tensor);
// Of an object that OfOpaque made; null of any other value.
const tensorflow::Tensor* OpaqueOf(const tvm_abi::Any& value);
// Of a shape, as long as it lives; empty for any other value.
absl::Span<const int64_t> ShapeOf(const tvm_abi::Any& value);
tvm_abi::DataType DtypeOf(const tvm_abi::Any& dtype);
// Of a string; empty for any other value. It lives as long as `value` does where it is.
absl::string_view TextOf(const tvm_abi::Any& value);

// An array of these values.
absl::StatusOr<Value> ArrayOf(absl::Span<const tvm_abi::Any> values);

// A function in TVM's table of global ones, as long as this object lives; then the one that was
// there before is there again.
class GlobalScope {
 public:
  GlobalScope(const char* name, Callback callback);
  ~GlobalScope();
  GlobalScope(const GlobalScope&) = delete;
  GlobalScope& operator=(const GlobalScope&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  const char* const name_;
  Value before_;
  absl::Status status_;
};

// What kernels call by this name where TVM may call them, or this runtime: both have their error.
inline constexpr char kRaiseParts[] = "TVMFFIErrorSetRaisedFromCStrParts";
const void* RaiseParts();

// Calls a function object. What it raises is the status of KernelError for `name`, and so is an
// exception that it throws.
absl::StatusOr<Value> Call(absl::string_view name, const Value& function,
                           absl::Span<const tvm_abi::Any> arguments);
// The same for a function in TVM's table of global ones. NotFound where there is none.
absl::StatusOr<Value> CallGlobal(absl::string_view name, absl::Span<const tvm_abi::Any> arguments);

}  // namespace tvm_ffi
}  // namespace composite

#endif  // COMPOSITE_RUNTIME_FOREIGN_TVM_FFI_H_
