/* The kernel of count_bits: y[i] is how many bits of x[i] are 1.
 *
 *     cc -O2 -fPIC -c count_bits.c -o count_bits.o
 *
 * The structs are TVMFFIAny and DLTensor of TVM's headers <tvm/ffi/c_api.h> and <dlpack/dlpack.h>.
 */
#include <stdint.h>

typedef struct {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t dtype_code, dtype_bits;
  uint16_t dtype_lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor;

typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  tensor* v_ptr;
} argument;

/* Inputs, then outputs; 0, or another number for an error. */
int __tvm_ffi_count_bits(void* self, const argument* args, int32_t count, argument* result) {
  if (count != 2) return -1;
  const int32_t* x = args[0].v_ptr->data;
  int32_t* y = args[1].v_ptr->data;
  const int64_t n = args[0].v_ptr->shape[0];
  for (int64_t i = 0; i < n; ++i) y[i] = __builtin_popcount((uint32_t)x[i]);
  return 0;
}
