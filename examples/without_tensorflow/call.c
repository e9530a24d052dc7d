/* Calls a dense layer of a built library: no TensorFlow, no Python, no TVM.
 *
 *     call LIBRARY
 *
 * LIBRARY is a folder that composite.build wrote of examples/digits/ops.py, with a kernel for
 * float32 x [rows, 64], w [10, 64] and b [10]. x[i, k] is i + 1, w[j, k] is j - 4, b[j] is j. The
 * rows of the result are written to standard output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "composite/runtime/standalone_c_api.h"

enum { ROWS = 2, DEEP = 64, WIDE = 10 };

static char error[1024];

static void must(int code, const char* what) {
  if (code == 0) return;
  fprintf(stderr, "call: %s (%d): %s\n", what, code, error);
  exit(1);
}

static composite_tensor float32(float* data, int64_t* shape, int ndim) {
  composite_tensor tensor = {.data = data, .device_type = 1, .ndim = ndim, .shape = shape};
  tensor.dtype_code = 2; /* float */
  tensor.dtype_bits = 32;
  tensor.dtype_lanes = 1;
  return tensor;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: call LIBRARY\n"), 2;
  composite_kernels* kernels;
  must(composite_open_kernels(argv[1], &kernels, error, sizeof(error)), "cannot open the kernels");
  const composite_function* dense;
  must(composite_find_function(kernels, "fused_fully_connected", "{\"act\": \"RELU\"}", &dense,
                               error, sizeof(error)),
       "cannot find the op");

  float x[ROWS][DEEP], w[WIDE][DEEP], b[WIDE];
  for (int k = 0; k < DEEP; ++k) {
    for (int i = 0; i < ROWS; ++i) x[i][k] = i + 1;
    for (int j = 0; j < WIDE; ++j) w[j][k] = j - 4;
  }
  for (int j = 0; j < WIDE; ++j) b[j] = j;
  int64_t x_shape[] = {ROWS, DEEP}, w_shape[] = {WIDE, DEEP}, b_shape[] = {WIDE};
  const composite_tensor inputs[] = {float32(&x[0][0], x_shape, 2), float32(&w[0][0], w_shape, 2),
                                     float32(b, b_shape, 1)};

  int64_t y_shape[COMPOSITE_MOST_DIMS];
  composite_tensor y = {.shape = y_shape};
  must(composite_output_shapes(dense, inputs, 3, &y, 1, error, sizeof(error)), "cannot call it");
  int64_t elements = 1;
  for (int d = 0; d < y.ndim; ++d) elements *= y.shape[d];
  float* result = y.data = malloc(elements * sizeof(float));
  must(composite_call(dense, inputs, 3, &y, 1, error, sizeof(error)), "cannot call it");

  for (int64_t i = 0; i < elements; ++i) {
    printf("%g%c", result[i], (i + 1) % y.shape[y.ndim - 1] ? ' ' : '\n');
  }
  free(result);
  return 0;
}
