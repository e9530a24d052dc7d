#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <utility>

#include "composite/runtime/standalone/library.h"
#include "composite/runtime/standalone_c_api.h"

using composite::standalone::Choice;
using composite::standalone::Failure;
using composite::standalone::Function;
using composite::standalone::Library;
using composite::standalone::Tensor;

static_assert(sizeof(composite_tensor) == sizeof(Tensor) &&
                  offsetof(composite_tensor, strides) == offsetof(Tensor, strides),
              "composite_tensor is the ABI's tensor");
static_assert(COMPOSITE_MOST_DIMS == composite::standalone::kMostDims, "");

namespace {

const Library* Unwrap(const composite_kernels* kernels) {
  return reinterpret_cast<const Library*>(kernels);
}
const Function* Unwrap(const composite_function* function) {
  return reinterpret_cast<const Function*>(function);
}
const Tensor* Unwrap(const composite_tensor* tensors) {
  return reinterpret_cast<const Tensor*>(tensors);
}

// Runs `body(&failure)`, and answers with what it failed by. Nothing is thrown into C.
template <typename Body>
int Answer(char* error, size_t error_size, Body body) {
  Failure failure;
  try {
    body(&failure);
  } catch (const std::exception& thrown) {
    failure.Set(composite::standalone::kInternal, thrown.what());
  }
  if (error != nullptr && error_size > 0) {
    std::snprintf(error, error_size, "%s", failure.message.c_str());
  }
  return failure.code;
}

}  // namespace

extern "C" {

int composite_open_kernels(const char* folder, composite_kernels** kernels, char* error,
                           size_t error_size) {
  return Answer(error, error_size, [&](Failure* failure) {
    *kernels = reinterpret_cast<composite_kernels*>(Library::Open(folder, failure).release());
  });
}

int composite_find_function(const composite_kernels* kernels, const char* op,
                            const char* attributes, const composite_function** function,
                            char* error, size_t error_size) {
  return Answer(error, error_size, [&](Failure* failure) {
    *function =
        reinterpret_cast<const composite_function*>(Unwrap(kernels)->Find(op, attributes, failure));
  });
}

int composite_output_count(const composite_function* function) {
  return Unwrap(function)->outputs();
}

int composite_output_shapes(const composite_function* function, const composite_tensor* inputs,
                            int input_count, composite_tensor* outputs, int output_count,
                            char* error, size_t error_size) {
  return Answer(error, error_size, [&](Failure* failure) {
    Choice choice;
    if (!Unwrap(function)->Choose(Unwrap(inputs), input_count, &choice, failure)) return;
    const auto& kernel = *choice.kernel;
    for (int i = 0; i < std::min(output_count, kernel.outputs); ++i) {
      composite_tensor& output = outputs[i];
      const uint32_t dtype = kernel.dtypes[kernel.inputs + i];
      output.device_type = composite::tvm_abi::kCpu;
      output.device_id = 0;
      output.ndim = kernel.ranks[kernel.inputs + i];
      output.dtype_code = static_cast<uint8_t>(dtype);
      output.dtype_bits = static_cast<uint8_t>(dtype >> 8);
      output.dtype_lanes = 1;
      output.strides = nullptr;
      output.byte_offset = 0;
      if (!Unwrap(function)->OutputDims(choice, i, output.shape, failure)) return;
    }
  });
}

int composite_call(const composite_function* function, const composite_tensor* inputs,
                   int input_count, const composite_tensor* outputs, int output_count, char* error,
                   size_t error_size) {
  return Answer(error, error_size, [&](Failure* failure) {
    Choice choice;
    if (!Unwrap(function)->Choose(Unwrap(inputs), input_count, &choice, failure)) return;
    if (!CheckOutputs(*Unwrap(function), choice, Unwrap(outputs), output_count, failure)) return;
    Unwrap(function)->Run(choice, Unwrap(inputs), Unwrap(outputs), failure);
  });
}

}  // extern "C"
