/* The part of libcomposite_runtime.so's C API for programs without Python: plain C, no protos.
 * docs/deploy.md shows its use. No function throws or aborts; all are thread-safe. */
#ifndef COMPOSITE_RUNTIME_LIBRARY_C_API_H_
#define COMPOSITE_RUNTIME_LIBRARY_C_API_H_

#include <stdint.h>

#include "composite/runtime/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a folder that composite.build wrote: its ops and kernels are known to TensorFlow then. Or
 * the folder assets.extra/composite/region-kernels of a model that composite.accelerate wrote.
 * Nothing of it is run before TensorFlow's version and the digest are checked. 0, or an
 * absl::StatusCode and one sentence in error[]. Loading a library again is harmless. */
COMPOSITE_EXPORT int composite_load_library(const char* folder, char* error, size_t error_size);

/* One of the counters of composite.stats(), "kernel_launches" say; -1 when there is none of that
 * name. */
COMPOSITE_EXPORT int64_t composite_counter(const char* name);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_LIBRARY_C_API_H_ */
