/* The kernel half of the C API of libcomposite_runtime.so; c_api.h has the other, and the rules. */
#ifndef COMPOSITE_RUNTIME_API_KERNEL_C_API_H_
#define COMPOSITE_RUNTIME_API_KERNEL_C_API_H_

#include "composite/runtime/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records have the fields of composite/binding/fields.py: one that is unknown, missing or of
 * another type, and a _version (i) that this runtime does not know, is InvalidArgument with its
 * name. */

/* A kernel record -> empty. NodeDef: name = symbol without its prefix, op, attrs of the op, and
 *   _composite_program (s); _in_shapes list(shape), a negative dim is symbol -(dim + 1);
 *   _out_shapes list(s): dims joined by ",", a dim is postfix over numbers, s0, s1, ..., + - * //
 * %; _composite_constants list(i), the inputs that it takes for constant, and for what it packs of
 * them _packed_sources, _packed_elements list(i), _packed_dtypes list(type); _minimums, _divisors
 * list(i) by symbol; _library (s, absolute), _library_sha256 (s, hex); _barriers (b), false: no
 * loop of it has one, absent: all loops of its library are launched as if they had; _isa (s)
 * x86-64[-v2|-v3|-v4]; _device (s) CPU; _target, _strategy, _proof, _algebra (s); _exact (b),
 * _error (f) in _error_unit (s); _verdict (s) kernel | expansion | unmeasured; _kernel_us,
 * _expansion_us (f); the decision table _sizes list(i), _kernel_times, _expansion_times list(f),
 * _kernel_wins list(b). A record without _library gives a kernel of that name and shapes a new
 * verdict and new times. */
COMPOSITE_EXPORT int composite_install(const char* request, size_t size, composite_buffer* reply);

/* NodeDef attr timeout_ms (i) -> empty when nothing is wanted until then, or a NodeDef: name =
 * ticket; op and its attrs; _composite_program; _in_shapes; _hint list(i): the symbols' values in
 * the call that asked; _must (b): that call waits. */
COMPOSITE_EXPORT int composite_next_request(const char* request, size_t size,
                                            composite_buffer* reply);

/* NodeDef name = ticket; attrs status (s) kernel | expansion | not_covered | failed, reason (s);
 * sizes list(i), see composite.kernels.produce.Outcome; node and function (s): regions of that
 * function's name leave the node outside from now on -> empty. */
COMPOSITE_EXPORT int composite_finish(const char* request, size_t size, composite_buffer* reply);

/* Counts a kernel that was compiled for this process -> empty. */
COMPOSITE_EXPORT int composite_count_compile(const char* request, size_t size,
                                             composite_buffer* reply);

/* empty -> GraphDef with a node for each region that nodes were refused in: op RefusedNodes, name =
 * the region's function, attr nodes: list(s). */
COMPOSITE_EXPORT int composite_refused_nodes(const char* request, size_t size,
                                             composite_buffer* reply);

/* A GraphDef as composite_refused_nodes answers -> empty: these nodes are refused. */
COMPOSITE_EXPORT int composite_refuse_nodes(const char* request, size_t size,
                                            composite_buffer* reply);

/* NodeDef attr reset (b, optional) -> GraphDef with a node for each region that was called: name =
 * its function; attrs kernel, expansion (i), calls that ran them; saved_us (f), by the kernels; why
 * (s) the last calls that ran the expansion did so. */
COMPOSITE_EXPORT int composite_region_counts(const char* request, size_t size,
                                             composite_buffer* reply);

/* NodeDef attrs folder (s), of kernels in a saved model; digest (s), the SHA-256 (hex) of its
 * kernels.pb; native_code (b), whether kernels may be mapped: without, what it says of nodes that
 * have none is all that is read -> empty. */
COMPOSITE_EXPORT int composite_load_kernels(const char* request, size_t size,
                                            composite_buffer* reply);

/* empty -> NodeDef attr pending (i): requests that wait or are worked on. */
COMPOSITE_EXPORT int composite_pending(const char* request, size_t size, composite_buffer* reply);

/* NodeDef attr running (b) -> empty. Kernels are asked for only while a worker runs; stopping it
 * drops the requests and wakes composite_next_request. */
COMPOSITE_EXPORT int composite_worker(const char* request, size_t size, composite_buffer* reply);

/* NodeDef attr begin (b) -> empty. Between a call that begins and one that does not, variables
 * count as at rest from the first call that reads them. */
COMPOSITE_EXPORT int composite_presume_rest(const char* request, size_t size,
                                            composite_buffer* reply);

/* NodeDef attr reset (b, optional) -> NodeDef, one attr (i) for each counter. */
COMPOSITE_EXPORT int composite_stats(const char* request, size_t size, composite_buffer* reply);

/* As composite_expand, all dims known; optional _composite_constants, _composite_variables list(i),
 * as a node of a graph has them, and _device (s), CPU if absent -> NodeDef: path (s) kernel |
 * compiling | expansion; final (b): the graph pass puts the expansion in the node's place; reason
 * (s); if a kernel covers the call: kernel, target, strategy, proof, algebra, accuracy, error_unit,
 * library (s), exact (b), error, kernel_us, expansion_us (f), and its decision table: sizes
 * list(i), kernel_times, expansion_times list(f), kernel_wins list(b); of a composition: composes
 * (s), the TF op, and replaces (b). */
COMPOSITE_EXPORT int composite_explain(const char* request, size_t size, composite_buffer* reply);

/* NodeDef attrs backend (s) "", auto, tvm, tf; numerics (s) "", fast, strict, invariant; xla (s)
 * "", never, or seconds; thread (b): of the calling thread, otherwise of the process -> NodeDef:
 * the previous backend, numerics and xla. "" is not set: the thread then has the process's option,
 * and that is "auto". */
COMPOSITE_EXPORT int composite_set_options(const char* request, size_t size,
                                           composite_buffer* reply);

/* NodeDef attrs limited (b), names: list(s) -> empty: from now on the calling thread forms no
 * regions but those of these names, or, not limited, all. */
COMPOSITE_EXPORT int composite_only_regions(const char* request, size_t size,
                                            composite_buffer* reply);

/* tensorflow.RewriterConfig -> empty: the rewrites that expansions which run often get from now on,
 * in place of those that TensorFlow was started with. */
COMPOSITE_EXPORT int composite_set_rewriter_options(const char* request, size_t size,
                                                    composite_buffer* reply);

/* Built libraries: called by the generated static initializer. */

/* Compiled into every built library, so its layout stays as it is. What changes from version to
 * version is in the record, whose _version says how it is to be read. */
typedef struct {
  const char* record; /* a serialized kernel record */
  size_t size;
  void* function;       /* its __tvm_ffi_ symbol */
  void* const* packers; /* those of what packs its constants, by packed argument; or null */
} composite_kernel;

/* Fills the slots of the library's kernels; before composite_register_ops. Null for a slot that
 * the library does not have. */
COMPOSITE_EXPORT void composite_bind_slots(void** parallel_launch, void** parallel_barrier,
                                           void** alloc_workspace, void** free_workspace);

/* Registers a program with its kernels. 0, or a status code and the message in error[]. Kernels for
 * other machines than this one are left out, which composite_explain then says. */
COMPOSITE_EXPORT int composite_register_ops(const char* program, size_t size,
                                            const composite_kernel* kernels, size_t count,
                                            char* error, size_t error_size);

/* Registers a kernel for GPUs of an op that is registered: its record, which says the level and the
 * launches, and its machine code. 0, or as above. No GPU is asked for until a node calls it. */
COMPOSITE_EXPORT int composite_register_gpu_kernel(const char* record, size_t size,
                                                   const char* image, size_t image_size,
                                                   char* error, size_t error_size);

/* Gives a registered kernel what `timings`, the text of timings.json, says of it; one for GPUs has
 * no function here. Null, or no word of it there: it stays as its record has it. */
COMPOSITE_EXPORT void composite_register_timings(const composite_kernel* kernel,
                                                 const char* timings);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_API_KERNEL_C_API_H_ */
