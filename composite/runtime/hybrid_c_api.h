/* The part of libcomposite_runtime.so's C API that runs models which composite.hybrid compiled, in
 * programs without Python: plain C, TensorFlow's own tensors. docs/hybrid.md shows its use. No
 * function throws or aborts; all are thread-safe. Each that can fail returns 0, or an
 * absl::StatusCode and one sentence in error[] (cut where it does not fit). */
#ifndef COMPOSITE_RUNTIME_HYBRID_C_API_H_
#define COMPOSITE_RUNTIME_HYBRID_C_API_H_

#include "composite/runtime/c_api.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct composite_hybrid composite_hybrid;

/* Opens a file that HybridModule.save wrote. TVM's libtvm_ffi.so and libtvm_runtime.so are those
 * that the process has mapped, or else those that the linker finds by these names. This runs native
 * code: open only what you would run. */
COMPOSITE_EXPORT int composite_open_hybrid(const char* path, composite_hybrid** model, char* error,
                                           size_t error_size);
/* No call may be running. Outputs of former calls stay as they are. */
COMPOSITE_EXPORT void composite_close_hybrid(composite_hybrid* model);

COMPOSITE_EXPORT int composite_hybrid_input_count(const composite_hybrid* model);
COMPOSITE_EXPORT int composite_hybrid_output_count(const composite_hybrid* model);
/* JSON, as long as the model lives. `specs` has a pair for each input, its dtype and its dims, null
 * for what may vary; `inputs` and `outputs` have the number of each in its place in the arguments,
 * by position and by name, and in what the model returns. */
COMPOSITE_EXPORT const char* composite_hybrid_description(const composite_hybrid* model);

/* The inputs stay the caller's, and the outputs become so: TF_DeleteTensor. Memory is shared, so
 * nothing is written into either while the other is in use. Several threads may call one model at
 * once. No output is set where it fails. */
COMPOSITE_EXPORT int composite_call_hybrid(composite_hybrid* model, TF_Tensor* const* inputs,
                                           int input_count, TF_Tensor** outputs, int output_count,
                                           char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_HYBRID_C_API_H_ */
