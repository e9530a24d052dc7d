#include "composite/runtime/standalone/function.h"

#include <algorithm>
#include <utility>

#include "composite/runtime/base/dim_arithmetic.h"
#include "composite/runtime/standalone/worker_pool.h"

namespace composite {
namespace standalone {
namespace {

// Numbers and symbols between operators; compiler/emit/standalone.py writes them.
constexpr char kNumber = 'n';
constexpr char kSymbol = 's';
constexpr int kDeepest = 64;

bool Covers(const Kernel& kernel, const Tensor* inputs, int count, int64_t* values) {
  if (count != kernel.inputs) return false;
  std::fill_n(values, kernel.symbols, int64_t{-1});
  const int64_t* wanted = kernel.dims;
  for (int i = 0; i < count; ++i) {
    const Tensor& input = inputs[i];
    if (input.ndim != kernel.ranks[i] || DtypeKey(input.dtype) != kernel.dtypes[i]) return false;
    for (int d = 0; d < input.ndim; ++d, ++wanted) {
      const int64_t dim = input.shape[d];
      if (*wanted >= 0) {
        if (dim != *wanted) return false;
        continue;
      }
      int64_t& value = values[-(*wanted + 1)];
      if (value < 0) value = dim;
      if (value != dim) return false;
    }
  }
  for (int i = 0; i < kernel.symbols; ++i) {
    if (values[i] < kernel.minimums[i] || values[i] % kernel.divisors[i] != 0) return false;
  }
  return true;
}

// One dim, from its length on, after which *code stands. False: it has no value.
bool Evaluate(const int64_t** code, const int64_t* values, int64_t* result) {
  int64_t stack[kDeepest];
  int depth = 0;
  const int64_t* end = *code + 1 + 2 * **code;
  for (const int64_t* token = *code + 1; token != end; token += 2) {
    const char op = static_cast<char>(token[0]);
    if (op == kNumber || op == kSymbol) {
      if (depth == kDeepest) return false;
      stack[depth++] = op == kNumber ? token[1] : values[token[1]];
      continue;
    }
    --depth;
    if (!ApplyToDims(op, stack[depth - 1], stack[depth], &stack[depth - 1])) return false;
  }
  *code = end;
  *result = stack[0];
  return stack[0] >= 0;
}

bool IsAligned(const Tensor& tensor) {
  const uintptr_t size = std::max(1, tensor.dtype.bits / 8);
  return (reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset) % size == 0;
}

bool IsCompact(const Tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  bool compact = true;
  for (int d = tensor.ndim - 1; d >= 0; --d) {
    if (tensor.shape[d] == 0) return true;
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) compact = false;
    expected *= tensor.shape[d];
  }
  return compact;
}

bool IsEmpty(const Tensor& tensor) {
  return std::find(tensor.shape, tensor.shape + tensor.ndim, 0) != tensor.shape + tensor.ndim;
}

// The same tensor as kernels take it: its data at its address, without strides.
Tensor Plain(const Tensor& tensor) {
  Tensor plain = tensor;
  if (tensor.data != nullptr) plain.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  plain.byte_offset = 0;
  plain.strides = nullptr;
  return plain;
}

std::string Dims(const int64_t* dims, int count) {
  std::string text = "[";
  for (int d = 0; d < count; ++d) text += (d == 0 ? "" : ",") + std::to_string(dims[d]);
  return text + "]";
}

std::string Described(const Tensor& tensor) {
  return DtypeName(DtypeKey(tensor.dtype)) + Dims(tensor.shape, tensor.ndim);
}

Code CodeOf(const tvm_abi::Error& error) {
  if (error.kind == "IndexError") return kOutOfRange;
  if (error.kind == "MemoryError") return kResourceExhausted;
  return error.kind == "TypeError" || error.kind == "ValueError" ? kInvalidArgument : kInternal;
}

}  // namespace

std::string DtypeName(uint32_t key) {
  static constexpr const char* kNames[] = {"int",    "uint",    "float", "handle",
                                           "bfloat", "complex", "bool"};
  const uint32_t code = key & 0xff, bits = key >> 8;
  if (code >= sizeof(kNames) / sizeof(*kNames) || bits > 0xff) return "a dtype without a name";
  return code == tvm_abi::kBool ? "bool" : kNames[code] + std::to_string(bits);
}

bool Function::Choose(const Tensor* inputs, int count, Choice* choice, Failure* failure) const {
  for (int i = 0; i < count; ++i) {
    if (inputs[i].device.type != tvm_abi::kCpu) {
      return failure->Set(kInvalidArgument,
                          name_ + ": input " + std::to_string(i) + " is not in the CPU's memory " +
                              "(DLPack's device type " + std::to_string(inputs[i].device.type) +
                              "); kernels run on the CPU: copy it there");
    }
  }
  for (const Kernel* kernel : kernels_) {
    if (!Covers(*kernel, inputs, count, choice->values.data())) continue;
    choice->kernel = kernel;
    return true;
  }
  return failure->Set(kInvalidArgument, Uncovered(inputs, count));
}

bool Function::OutputDims(const Choice& choice, int i, int64_t* dims, Failure* failure) const {
  const Kernel& kernel = *choice.kernel;
  const int32_t* ranks = kernel.ranks + kernel.inputs;
  const int64_t* code = kernel.output_dims;
  for (int k = 0; k < i; ++k) {
    for (int d = 0; d < ranks[k]; ++d) code += 1 + 2 * *code;
  }
  for (int d = 0; d < ranks[i]; ++d) {
    if (Evaluate(&code, choice.values.data(), &dims[d])) continue;
    return failure->Set(kInvalidArgument, name_ + ": dim " + std::to_string(d) + " of output " +
                                              std::to_string(i) + " is negative or has no value");
  }
  return true;
}

bool Function::Run(const Choice& choice, const Tensor* inputs, const Tensor* outputs,
                   Failure* failure) const {
  const Kernel& kernel = *choice.kernel;
  std::vector<Tensor> tensors(kernel.inputs + kernel.outputs);
  bool all_empty = kernel.outputs > 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_input = i < static_cast<size_t>(kernel.inputs);
    const Tensor& tensor = is_input ? inputs[i] : outputs[i - kernel.inputs];
    if (!IsCompact(tensor) || !IsAligned(tensor)) {
      return failure->Set(kInvalidArgument,
                          name_ + (is_input ? ": input " : ": output ") +
                              std::to_string(is_input ? i : i - kernel.inputs) +
                              " is not contiguous, or not aligned as its elements are: copy it "
                              "(numpy.array, Tensor.contiguous)");
    }
    tensors[i] = Plain(tensor);
    if (!is_input) all_empty = all_empty && IsEmpty(tensor);
  }
  if (all_empty) return true;
  tvm_abi::Host host;
  host.pool = WorkerPool::Global();
  host.barriers = kernel.barriers != 0;
  tvm_abi::Error error;
  if (tvm_abi::Call(kernel.function, host, tensors.data(), static_cast<int>(tensors.size()),
                    &error)) {
    return true;
  }
  return failure->Set(CodeOf(error),
                      name_ + ": its kernel raised " + error.kind + ": " + error.message);
}

std::string Function::Uncovered(const Tensor* inputs, int count) const {
  std::string text = name_ + ": no kernel covers (";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + Described(inputs[i]);
  text += "); there are kernels for ";
  constexpr size_t kMost = 4;
  for (size_t i = 0; i < kernels_.size() && i < kMost; ++i) {
    text += std::string(i == 0 ? "(" : ", (") + kernels_[i]->shapes + ")";
  }
  if (kernels_.size() > kMost)
    text += " and " + std::to_string(kernels_.size() - kMost) + " others";
  return text + ": build the library with a signature for this call";
}

bool CheckOutputs(const Function& function, const Choice& choice, const Tensor* outputs, int count,
                  Failure* failure) {
  const Kernel& kernel = *choice.kernel;
  if (count != kernel.outputs) {
    return failure->Set(kInvalidArgument, function.name() + " has " +
                                              std::to_string(kernel.outputs) + " outputs, not " +
                                              std::to_string(count));
  }
  for (int i = 0; i < count; ++i) {
    int64_t dims[kMostDims];
    if (!function.OutputDims(choice, i, dims, failure)) return false;
    const int rank = kernel.ranks[kernel.inputs + i];
    const uint32_t dtype = kernel.dtypes[kernel.inputs + i];
    if (outputs[i].device.type == tvm_abi::kCpu && outputs[i].ndim == rank &&
        DtypeKey(outputs[i].dtype) == dtype && std::equal(dims, dims + rank, outputs[i].shape)) {
      continue;
    }
    return failure->Set(kInvalidArgument, function.name() + ": output " + std::to_string(i) +
                                              " is " + DtypeName(dtype) + Dims(dims, rank) +
                                              " in the CPU's memory, and not " +
                                              Described(outputs[i]));
  }
  return true;
}

}  // namespace standalone
}  // namespace composite
