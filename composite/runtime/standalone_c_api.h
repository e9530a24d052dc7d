/* The C API of libcomposite_standalone.so: the kernels of a library that composite.build wrote, in
 * a program without TensorFlow and without Python. Link with -lcomposite_standalone; docs/deploy.md
 * shows its use.
 *
 * No function throws or aborts. All are thread-safe. Each returns 0, or an absl::StatusCode and one
 * sentence in error[] (cut where it does not fit). What they return lives as long as the process.
 */
#ifndef COMPOSITE_RUNTIME_STANDALONE_C_API_H_
#define COMPOSITE_RUNTIME_STANDALONE_C_API_H_

#include <stddef.h>
#include <stdint.h>

#include "composite/runtime/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* No output has more dims. */
#define COMPOSITE_MOST_DIMS 32

/* DLTensor of <dlpack/dlpack.h>, to and from which it may be cast. Row-major and compact when
 * strides is NULL. Codes of dtypes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool; lanes are 1. */
typedef struct {
  void* data;
  int32_t device_type; /* 1: CPU */
  int32_t device_id;
  int32_t ndim;
  uint8_t dtype_code;
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
  int64_t* shape;
  int64_t* strides; /* in elements */
  uint64_t byte_offset;
} composite_tensor;

typedef struct composite_kernels composite_kernels;
/* An op with values for its attributes. */
typedef struct composite_function composite_function;

/* Maps the kernels of a folder, after their digest was checked. This runs native code: open only
 * what you would run. */
COMPOSITE_EXPORT int composite_open_kernels(const char* folder, composite_kernels** kernels,
                                            char* error, size_t error_size);

/* The function of an op, by its name in Python or in TensorFlow. `attributes` is a JSON object of
 * what the author left to callers, keys in order and ", " and ": " between them: {"act": "RELU"}.
 * NULL: the defaults. */
COMPOSITE_EXPORT int composite_find_function(const composite_kernels* kernels, const char* op,
                                             const char* attributes,
                                             const composite_function** function, char* error,
                                             size_t error_size);

/* How many outputs it has. */
COMPOSITE_EXPORT int composite_output_count(const composite_function* function);

/* Sets dtype, device, ndim and dims of each output, as they are for these inputs, of which only
 * dtypes, devices and dims are read. Each outputs[i].shape has room for COMPOSITE_MOST_DIMS. */
COMPOSITE_EXPORT int composite_output_shapes(const composite_function* function,
                                             const composite_tensor* inputs, int input_count,
                                             composite_tensor* outputs, int output_count,
                                             char* error, size_t error_size);

/* Fills the outputs, whose memory is the caller's and overlaps with no other. Tensors are compact,
 * on the CPU, and aligned as their elements are. Returns when all is written. */
COMPOSITE_EXPORT int composite_call(const composite_function* function,
                                    const composite_tensor* inputs, int input_count,
                                    const composite_tensor* outputs, int output_count, char* error,
                                    size_t error_size);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_STANDALONE_C_API_H_ */
