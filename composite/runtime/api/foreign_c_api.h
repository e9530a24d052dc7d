/* The part of libcomposite_runtime.so's C API that loads functions of other compilers and calls
 * them from graphs (CompositeTvmCall). Rules as in c_api.h. */
#ifndef COMPOSITE_RUNTIME_API_FOREIGN_C_API_H_
#define COMPOSITE_RUNTIME_API_FOREIGN_C_API_H_

#include "composite/runtime/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NodeDef attrs path (s); sha256 (s), "" for any; ffi, runtime (s): where libtvm_ffi.so and
 * libtvm_runtime.so are, "" where they are not known -> NodeDef attrs library (s), what nodes call
 * it by, and functions: list(s). Runs native code of the file: whoever calls this trusts it. */
COMPOSITE_EXPORT int composite_load_foreign_library(const char* request, size_t size,
                                                    composite_buffer* reply);
/* NodeDef attrs object (i), the handle of a function or module of TVM that lives in this process;
 * serial (b): one call at a time; returns (b): its functions return their outputs; ffi (s) ->
 * as above. */
COMPOSITE_EXPORT int composite_load_foreign_object(const char* request, size_t size,
                                                   composite_buffer* reply);
/* NodeDef attrs library, function (s); device (s), a device of TVM's that has to be here, "" for
 * none; ffi, runtime (s) -> NodeDef attr returns (b). NOT_FOUND: no such function. */
COMPOSITE_EXPORT int composite_find_foreign_function(const char* request, size_t size,
                                                     composite_buffer* reply);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_API_FOREIGN_C_API_H_ */
