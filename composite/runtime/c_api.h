/* The C API of libcomposite_runtime.so, as far as it concerns ops and programs; kernel_c_api.h has
 * the rest, under the same rules.
 *
 * Every message is a serialized TensorFlow proto; where "NodeDef" stands, it is used as a record of
 * named attributes. No function throws or aborts, whatever bytes it is given. All are thread-safe.
 *
 * Each `int composite_xxx(request, size, reply)` returns 0 and the answer in *reply, or an
 * absl::StatusCode and the message (UTF-8) in *reply. The caller frees *reply by composite_free.
 * COMPOSITE_NOT_YET is added to FAILED_PRECONDITION where an expansion lacks nothing but a fact: a
 * dim or a value that is not known so far.
 */
#ifndef COMPOSITE_RUNTIME_C_API_H_
#define COMPOSITE_RUNTIME_C_API_H_

#include <stddef.h>

#define COMPOSITE_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

#define COMPOSITE_NOT_YET 256

typedef struct {
  char* data;
  size_t size;
} composite_buffer;

COMPOSITE_EXPORT void composite_free(composite_buffer* buffer);

/* empty -> NodeDef: tensorflow (s), abi (i). */
COMPOSITE_EXPORT int composite_version(const char* request, size_t size, composite_buffer* reply);
/* NodeDef op = name; attrs inputs, attrs, outputs: list(s) in TF's OpDef grammar -> OpDef. The
 * error names the string that does not parse. */
COMPOSITE_EXPORT int composite_parse_declaration(const char* request, size_t size,
                                                 composite_buffer* reply);
/* NodeDef op = an op of TensorFlow -> OpDef, what a composition for it is declared as. */
COMPOSITE_EXPORT int composite_composition_declaration(const char* request, size_t size,
                                                       composite_buffer* reply);
/* A program (FunctionDefLibrary) -> empty. */
COMPOSITE_EXPORT int composite_register(const char* request, size_t size, composite_buffer* reply);
/* FunctionDefLibrary -> empty: function[0], named by what it computes, can be called by
 * CompositeCall from now on; the others are what it reaches. */
COMPOSITE_EXPORT int composite_register_function(const char* request, size_t size,
                                                 composite_buffer* reply);
/* FunctionDefLibrary -> NodeDef attr digest (s): the hash of what function[0] computes, which its
 * name is to hold. */
COMPOSITE_EXPORT int composite_function_digest(const char* request, size_t size,
                                               composite_buffer* reply);
/* FunctionDefLibrary -> NodeDef attr arguments: list(i), those of function[0] whose values XLA has
 * to know. */
COMPOSITE_EXPORT int composite_constant_arguments(const char* request, size_t size,
                                                  composite_buffer* reply);
/* FunctionDefLibrary -> FunctionDefLibrary: function[0] with a CompositeCall in the place of each
 * region, as the graph pass makes them, then the functions of the regions. */
COMPOSITE_EXPORT int composite_find_regions(const char* request, size_t size,
                                            composite_buffer* reply);
/* FunctionDefLibrary -> FunctionDefLibrary: function[0], which XLA is to compile, and those that it
 * runs, with a CompositeCall in the place of each region that the calling thread, or the name of
 * function[0], asks for: those that changed, and the functions of the regions. */
COMPOSITE_EXPORT int composite_form_xla_regions(const char* request, size_t size,
                                                composite_buffer* reply);
/* NodeDef attrs ops: list(s), the TF ops that the kernel compiler can lower; dtypes: list(type),
 * those that it computes in (absent: not known) -> empty. */
COMPOSITE_EXPORT int composite_set_kernel_ops(const char* request, size_t size,
                                              composite_buffer* reply);
/* NodeDef op = name; the op's attributes, derived ones included; optional `_composite_program` (s),
 * `_in_shapes` list(shape) of the flattened inputs (any negative dim is unknown), `_constants`
 * list(tensor) (DT_INVALID: not known), `_composite_whole` list(s), the versions of composites that
 * stay nodes, `_composite_inlined` (b), that those inside of a function do not ->
 * FunctionDefLibrary: function[0] is the expansion, the rest is what it reaches.
 * FAILED_PRECONDITION + COMPOSITE_NOT_YET when a fact is missing. */
COMPOSITE_EXPORT int composite_expand(const char* request, size_t size, composite_buffer* reply);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_C_API_H_ */
