#include "composite/runtime/api/host_c_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "composite/runtime/api/c_api_reply.h"
#include "composite/runtime/base/checked_file.h"
#include "composite/runtime/kernels/dtypes.h"
#include "composite/runtime/kernels/kernel_library.h"
#include "composite/runtime/launch/fixed_team.h"
#include "composite/runtime/launch/tvm_abi.h"
#include "composite/runtime/run/kernel_call.h"
#include "composite/runtime/words/arithmetic.h"
#include "composite/runtime/words/program.h"
#include "composite/runtime/words/run.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/denormal.h"
#include "tensorflow/core/platform/setround.h"

namespace composite {
namespace {

constexpr int kMostTasks = 64;
constexpr size_t kMostArguments = 4096;

// A library that is open as long as this object lives.
class OpenLibrary {
 public:
  explicit OpenLibrary(const char* path) : handle_(Open(path)) {
    if (handle_.ok()) FillSlotsOf(*handle_);
  }
  ~OpenLibrary() {
    if (handle_.ok()) dlclose(*handle_);
  }
  OpenLibrary(const OpenLibrary&) = delete;
  OpenLibrary& operator=(const OpenLibrary&) = delete;

  const absl::StatusOr<void*>& handle() const { return handle_; }

 private:
  static absl::StatusOr<void*> Open(const char* path) {
    absl::StatusOr<CheckedFile> file = CheckedFile::Open(path);
    if (!file.ok()) return file.status();
    absl::Status status = file->MakeExecutable();
    if (!status.ok()) return status;
    return file->Map(kOpenFlags);
  }

  const absl::StatusOr<void*> handle_;
};

absl::Status CheckCall(const composite_kernel_call* call) {
  if (call == nullptr) return absl::InvalidArgumentError("call: a null pointer");
  if (call->size != sizeof(composite_kernel_call)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "call.size: ", call->size, ", and this runtime's is ", sizeof(composite_kernel_call)));
  }
  if (call->library == nullptr) return absl::InvalidArgumentError("call.library: a null pointer");
  if (call->kernel == nullptr) return absl::InvalidArgumentError("call.kernel: a null pointer");
  if (call->count > kMostArguments) {
    return absl::InvalidArgumentError(
        absl::StrCat("call.count: ", call->count, " is more than ", kMostArguments));
  }
  if (call->arguments == nullptr && call->count > 0) {
    return absl::InvalidArgumentError("call.arguments: a null pointer");
  }
  if (call->tasks < 1 || call->tasks > kMostTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("call.tasks: ", call->tasks, " is not from 1 to ", kMostTasks));
  }
  return absl::OkStatus();
}

absl::StatusOr<tvm_abi::Tensor> Describe(const composite_array& array) {
  if (array.rank < 0 || array.rank > tensorflow::TensorShape::MaxDimensions()) {
    return absl::InvalidArgumentError(absl::StrCat("its rank is ", array.rank));
  }
  if (array.shape == nullptr && array.rank > 0) {
    return absl::InvalidArgumentError("its shape is a null pointer");
  }
  const auto dtype = static_cast<tensorflow::DataType>(array.dtype);
  if (ToAbi(dtype).code == kNoAbiCode) {
    return absl::InvalidArgumentError(absl::StrCat("no kernel takes its dtype, ", array.dtype));
  }
  tensorflow::TensorShape shape;
  absl::Status status = tensorflow::TensorShape::BuildTensorShape(
      absl::MakeConstSpan(array.shape, array.rank), &shape);
  if (!status.ok()) return status;
  if (array.data == nullptr && shape.num_elements() > 0) {
    return absl::InvalidArgumentError("its data is a null pointer");
  }
  // The ABI has no const: kernels do not write to shapes.
  return tvm_abi::Tensor{array.data,
                         {tvm_abi::kCpu, 0},
                         array.rank,
                         ToAbi(dtype),
                         const_cast<int64_t*>(array.shape),
                         nullptr,
                         0};
}

absl::StatusOr<std::vector<tvm_abi::Tensor>> DescribeAll(const composite_kernel_call& call) {
  std::vector<tvm_abi::Tensor> tensors;
  for (size_t i = 0; i < call.count; ++i) {
    absl::StatusOr<tvm_abi::Tensor> tensor = Describe(call.arguments[i]);
    if (!tensor.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("argument ", i, " of kernel ", call.kernel,
                                                     ": ", tensor.status().message()));
    }
    tensors.push_back(*tensor);
  }
  return tensors;
}

// Temporary buffers that are no numbers: a kernel that reads what it did not write shows that.
class NoNumbers final : public tvm_abi::Workspace {
 public:
  void* Allocate(size_t bytes) override {
    void* block = tvm_abi::AllocateAligned(bytes);
    if (block != nullptr) std::memset(block, 0xFF, bytes);
    return block;
  }
  void Free(void* block) override { std::free(block); }
};

// Runs a program of a file.
absl::Status CallProgram(const composite_kernel_call& call, absl::string_view file,
                         absl::Span<const tvm_abi::Tensor> tensors) {
  absl::StatusOr<words::Program> program = words::FindProgram(file, call.kernel);
  if (!program.ok()) return program.status();
  std::vector<words::Array> arrays;
  for (const tvm_abi::Tensor& tensor : tensors) {
    arrays.push_back(
        {tensor.data, tensor.dtype.bits / 8, absl::MakeConstSpan(tensor.shape, tensor.ndim)});
  }
  FixedTeam team(call.tasks);
  tvm_abi::Error error;
  if (words::Run(*program, arrays, call.steps, team, &error)) return absl::OkStatus();
  if (error.kind == words::kLimitError) return absl::DeadlineExceededError(error.message);
  return KernelError(call.kernel, error);
}

absl::Status CallOutsideGraph(const composite_kernel_call* call) {
  absl::Status status = CheckCall(call);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<tvm_abi::Tensor>> tensors = DescribeAll(*call);
  if (!tensors.ok()) return tensors.status();
  absl::StatusOr<CheckedFile> file = CheckedFile::Open(call->library);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::string> content = file->Read();
  if (content.ok() && words::HasPrograms(*content)) return CallProgram(*call, *content, *tensors);
  const OpenLibrary library(call->library);
  if (!library.handle().ok()) return library.handle().status();
  absl::StatusOr<tvm_abi::Function> function =
      FindKernel(*library.handle(), call->library, call->kernel);
  if (!function.ok()) return function.status();
  // As threads of TensorFlow's pools compute; the threads of the team take it over from this one.
  const tensorflow::port::ScopedFlushDenormal flush;
  const tensorflow::port::ScopedSetRound round(FE_TONEAREST);
  FixedTeam team(call->tasks);
  NoNumbers workspace;
  tvm_abi::Host host;
  host.team = &team;
  host.workspace = &workspace;
  tvm_abi::Error error;
  const int count = static_cast<int>(tensors->size());
  if (tvm_abi::Call(*function, host, tensors->data(), count, &error)) return absl::OkStatus();
  return KernelError(call->kernel, error);
}

}  // namespace
}  // namespace composite

extern "C" int composite_call_kernel(const composite_kernel_call* call, composite_buffer* error) {
  return composite::Reply(error, [&] { return composite::CallOutsideGraph(call); });
}

extern "C" int composite_multiply_words(const void* a, const void* b, void* product, int64_t bytes,
                                        int64_t rows, int64_t inner, int64_t columns,
                                        composite_buffer* error) {
  return composite::Reply(error, [&] {
    const bool done =
        composite::words::ArithmeticOfCpu().multiply({bytes, a, b, product, rows, inner, columns});
    return done ? absl::OkStatus()
                : absl::InvalidArgumentError(absl::StrCat("no product of words of ", bytes,
                                                          " bytes, or no memory for it"));
  });
}
