/* The part of libcomposite_runtime.so's C API that calls a kernel outside a graph: for checking one
 * before it is installed. Rules as in c_api.h. */
#ifndef COMPOSITE_RUNTIME_API_HOST_C_API_H_
#define COMPOSITE_RUNTIME_API_HOST_C_API_H_

#include <stdint.h>

#include "composite/runtime/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row-major, compact array. Its address needs the alignment of an element only. */
typedef struct {
  void* data;           /* may be null when there is no element */
  const int64_t* shape; /* `rank` dims; may be null when there is none */
  int32_t rank;
  int32_t dtype; /* a tensorflow::DataType */
} composite_array;

typedef struct {
  size_t size;         /* sizeof(composite_kernel_call) */
  const char* library; /* the path of the kernel's library, which is closed again afterwards, or of
                          a file of programs (words/program.h) */
  const char* kernel;  /* its symbol without the prefix; so is called what packs its constants */
  const composite_array* arguments; /* inputs, outputs, packed constants */
  size_t count;                     /* of arguments */
  int32_t tasks; /* 1 to 64: each parallel loop is divided into so many, which all run at once, on
                    threads that live as long as the call. Fewer when the system has no threads. */
  int64_t steps; /* of a program: how many instructions its loops may run, counted roughly */
} composite_kernel_call;

/* Calls a kernel. 0, or an absl::StatusCode and the message in *error, which the caller frees by
 * composite_free. NOT_FOUND: no such library or kernel; FAILED_PRECONDITION: it is no library that
 * can be loaded; INVALID_ARGUMENT: the call is not one, or the kernel refuses it;
 * DEADLINE_EXCEEDED: the program runs more instructions than `steps`; otherwise what the kernel
 * raised, INTERNAL when the tasks of a loop do not meet at the same barriers. The library is opened
 * without a look at its owner and its bytes, unlike those that composite_install is given. No
 * counter of composite_stats moves. Temporary buffers of the kernel have no numbers in them (NaN,
 * -1) until it has written some. The memory that an argument points to cannot be checked: a kernel
 * that is wrong may write where it must not.
 */
COMPOSITE_EXPORT int composite_call_kernel(const composite_kernel_call* call,
                                           composite_buffer* error);

/* The product of two matrices of unsigned integers, which wrap; all three are row-major and
 * compact, their words of 2, 4 or 8 bytes. 0, or an absl::StatusCode and the message in *error:
 * INVALID_ARGUMENT for words of other sizes, or if there is no memory for a part of `b`. */
COMPOSITE_EXPORT int composite_multiply_words(const void* a, const void* b, void* product,
                                              int64_t bytes, int64_t rows, int64_t inner,
                                              int64_t columns, composite_buffer* error);

#ifdef __cplusplus
}
#endif

#endif /* COMPOSITE_RUNTIME_API_HOST_C_API_H_ */
