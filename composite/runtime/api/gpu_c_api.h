/* The part of libcomposite_runtime.so's C API that calls a kernel on a GPU outside a graph: for
 * checking one before it is installed. Rules as in c_api.h. */
#ifndef COMPOSITE_RUNTIME_API_GPU_C_API_H_
#define COMPOSITE_RUNTIME_API_GPU_C_API_H_

#include "composite/runtime/api/host_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  size_t size;        /* sizeof(composite_gpu_call) */
  const char* record; /* a kernel record, whose device is a GPU's; see binding/fields.py */
  size_t record_size;
  const char* image; /* its machine code */
  size_t image_size;
  const composite_array* arguments; /* inputs, outputs; in the host's memory */
  size_t count;                     /* of arguments */
} composite_gpu_call;

/* Runs a kernel on the first GPU of the record's level, on copies of the inputs in memory of the
 * GPU's own, and fills the outputs. Returns when it is done. Nothing but what the kernel wants
 * aligned begins at a multiple of anything but an element. 0, or an absl::StatusCode and the
 * message in *error, which the caller frees by composite_free. INVALID_ARGUMENT: the call is none,
 * or not one of the record's class; FAILED_PRECONDITION: no driver, or no such GPU;
 * RESOURCE_EXHAUSTED: the GPU has no memory left; DATA_LOSS: the kernel wrote outside of its
 * outputs; INTERNAL: the driver refuses the kernel. No counter of composite_stats moves. */
COMPOSITE_EXPORT int composite_call_gpu_kernel(const composite_gpu_call* call,
                                               composite_buffer* error);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_API_GPU_C_API_H_ */
