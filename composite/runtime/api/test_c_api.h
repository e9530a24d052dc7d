/* What the tests of the runtime ask of it; nothing else calls these. The rules are c_api.h's. */
#ifndef COMPOSITE_RUNTIME_API_TEST_C_API_H_
#define COMPOSITE_RUNTIME_API_TEST_C_API_H_

#include "composite/runtime/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NodeDef attr how (s): "input", "dtype", "cycle", "function" -> empty: from now on the graph pass
 * breaks each graph and function that it changes on the calling thread, see
 * checking/broken_graph.h; "": none. */
COMPOSITE_EXPORT int composite_test_break_graphs(const char* request, size_t size,
                                                 composite_buffer* reply);

/* NodeDef attr on (b) -> empty: whether what XLA compiles on the CPU calls a kernel wherever there
 * can be one, see xla/kernel_choice.h. */
COMPOSITE_EXPORT int composite_test_force_xla_kernels(const char* request, size_t size,
                                                      composite_buffer* reply);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_API_TEST_C_API_H_ */
