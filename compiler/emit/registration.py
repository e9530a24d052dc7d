"""The C source of a built library: programs, kernel records and what registers them when loaded.

It is plain C99 that includes no header of ours or TensorFlow's, so that building a library needs
only `cc`. The kernels' object files are linked into it, and it is linked against the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.emit.library import LibraryKernel, LibraryOp

_HEAD = """\
/* The op library "{name}". Generated; do not edit.
 *
 * Loading it registers its ops with the composite runtime, and its kernels with what timings.json,
 * beside this library, says of where they are slower than TensorFlow's own ops.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* composite/runtime/api/kernel_c_api.h */
typedef struct {{
  const char* record;
  size_t size;
  void* function;
  void* const* packers;
}} composite_kernel;
extern int composite_register_ops(const char* program, size_t size, const composite_kernel* kernels,
                                  size_t count, char* error, size_t error_size);
extern int composite_register_gpu_kernel(const char* record, size_t size, const char* image,
                                         size_t image_size, char* error, size_t error_size);
extern void composite_register_timings(const composite_kernel* kernel, const char* timings);
extern void composite_bind_slots(void** parallel_launch, void** parallel_barrier,
                                 void** alloc_workspace, void** free_workspace);

/* What the host gives to kernels; a library has those that its kernels use. */
extern void* __TVMBackendParallelLaunch __attribute__((weak));
extern void* __TVMBackendParallelBarrier __attribute__((weak));
extern void* __TVMBackendAllocWorkspace __attribute__((weak));
extern void* __TVMBackendFreeWorkspace __attribute__((weak));
"""

_TAIL = """\
static char status[1024];

/* The programs, in order; NULL after the last one. */
__attribute__((visibility("default"))) const char* {program_symbol}(size_t index, size_t* size) {{
{programs}  return NULL;
}}

/* "" when everything was registered, else what was wrong. */
__attribute__((visibility("default"))) const char* {status_symbol}(void) {{ return status; }}

/* timings.json of this library's folder; NULL where there is none. */
static char* read_timings(void) {{
  Dl_info self;
  char path[PATH_MAX];
  /* realpath: a loader may have opened the library by descriptor, as /proc/self/fd/N. */
  if (!dladdr((void*)&status, &self) || !realpath(self.dli_fname, path)) return NULL;
  char* slash = strrchr(path, '/');
  if (!slash || (size_t)(slash - path) + sizeof("/timings.json") > sizeof(path)) return NULL;
  strcpy(slash, "/timings.json");
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  char* text = malloc({timings_limit} + 1);
  size_t size = text ? fread(text, 1, {timings_limit}, file) : 0;
  if (text) text[size] = 0;
  fclose(file);
  return text;
}}

__attribute__((constructor)) static void register_ops(void) {{
  char* timings = read_timings();
  char error[768];
  composite_bind_slots(
      &__TVMBackendParallelLaunch ? &__TVMBackendParallelLaunch : NULL,
      &__TVMBackendParallelBarrier ? &__TVMBackendParallelBarrier : NULL,
      &__TVMBackendAllocWorkspace ? &__TVMBackendAllocWorkspace : NULL,
      &__TVMBackendFreeWorkspace ? &__TVMBackendFreeWorkspace : NULL);
{calls}  free(timings);
}}
"""

# timings.json: some 400 bytes a kernel.
_TIMINGS_LIMIT = 4 << 20


def status_symbol(name: str) -> str:
    """The C function of a library that tells whether its registration went well."""
    return f"composite_library_{name}_status"


def program_symbol(name: str) -> str:
    """The C function of a library that gives its programs."""
    return f"composite_library_{name}_program"


def registration(name: str, ops: Sequence[LibraryOp], kernels: Sequence[LibraryKernel]) -> str:
    """The C source of library `name`. `ops` are in order: an op stands after those it calls."""
    parts = [_HEAD.format(name=name)]
    calls = []
    for i, op in enumerate(ops):
        own = [kernel for kernel in kernels if kernel.op_name == op.op_name]
        own.sort(key=lambda kernel: bool(kernel.image))
        parts.append(_array(f"program_{i}", op.program, op.op_name))
        parts += [_kernel_data(f"kernel_{i}_{k}", kernel) for k, kernel in enumerate(own)]
        calls.append(_call(i, op, own))
    parts.append(
        _TAIL.format(
            status_symbol=status_symbol(name),
            program_symbol=program_symbol(name),
            programs="".join(map(_program_case, range(len(ops)))),
            timings_limit=_TIMINGS_LIMIT,
            calls="".join(calls),
        )
    )
    return "\n".join(parts)


def _array(symbol: str, content: bytes, comment: str) -> str:
    lines = [f"/* {comment} */", f"static const unsigned char {symbol}[] = {{"]
    for start in range(0, len(content), 20):
        lines.append("  " + ",".join(str(b) for b in content[start : start + 20]) + ",")
    return "\n".join([*lines, "};\n"])


def _program_case(i: int) -> str:
    return f"  if (index == {i}) return *size = sizeof(program_{i}), (const char*)program_{i};\n"


def _kernel_data(symbol: str, kernel: LibraryKernel) -> str:
    record = _array(symbol, kernel.record, kernel.name)
    if kernel.image:
        return record + _array(
            f"{symbol}_image", kernel.image, f"the machine code of {kernel.name}"
        )
    functions = [f"__tvm_ffi_{kernel.name}", *_packers(kernel)]
    declared = [f"extern int {name}(void*, const void*, int, void*);" for name in functions]
    return "\n".join([*declared, record])


def _packers(kernel: LibraryKernel) -> list[str]:
    return [f"__tvm_ffi_{kernel.name}_pack{i}" for i in range(kernel.packed)]


def _call(i: int, op: LibraryOp, kernels: Sequence[LibraryKernel]) -> str:
    """The statements that register an op; its kernels for GPUs are the last."""
    lines = []
    table = "NULL"
    with_functions = [kernel for kernel in kernels if not kernel.image]
    if with_functions:
        table = "kernels"
        lines.append(f"    composite_kernel kernels[{len(with_functions)}];")
    for k, kernel in enumerate(with_functions):
        data, packers = f"kernel_{i}_{k}", "NULL"
        if kernel.packed:
            packers = f"packers_{k}"
            functions = ", ".join(f"(void*)&{name}" for name in _packers(kernel))
            lines.append(f"    void* const {packers}[] = {{{functions}}};")
        lines += [
            f"    kernels[{k}].record = (const char*){data};",
            f"    kernels[{k}].size = sizeof({data});",
            f"    kernels[{k}].function = (void*)&__tvm_ffi_{kernel.name};",
            f"    kernels[{k}].packers = {packers};",
        ]
    count = len(with_functions)
    lines += [
        "    if (!status[0] &&",
        f"        composite_register_ops((const char*)program_{i}, sizeof(program_{i}), {table},",
        f"                               {count}, error, sizeof(error)))",
        _failed(op),
        *(f"    composite_register_timings(&kernels[{k}], timings);" for k in range(count)),
    ]
    for k in range(count, len(kernels)):
        lines += _gpu_call(f"kernel_{i}_{k}", op)
    return "  {\n" + "\n".join(lines) + "\n  }\n"


def _gpu_call(data: str, op: LibraryOp) -> list[str]:
    kernel = f"(const char*){data}, sizeof({data})"
    image = f"(const char*){data}_image, sizeof({data}_image)"
    return [
        f"    const composite_kernel {data}_gpu = {{{kernel}, NULL, NULL}};",
        "    if (!status[0] &&",
        f"        composite_register_gpu_kernel({kernel},",
        f"                                      {image},",
        "                                      error, sizeof(error)))",
        _failed(op),
        f"    composite_register_timings(&{data}_gpu, timings);",
    ]


def _failed(op: LibraryOp) -> str:
    return f'      snprintf(status, sizeof(status), "{op.op_name}: %s", error);'
