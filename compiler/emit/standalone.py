"""The C source of lib<name>_kernels.so: a library's kernels for processes without TensorFlow.

It is plain C99 that includes no header of ours. The structs are those of
composite/runtime/standalone/table.h, which reads them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

VERSION = 1  # kTableVersion of table.h
TABLE = "composite_kernel_table"

_HEAD = """\
/* The kernels of the library "{name}", for processes without TensorFlow. Generated; do not edit. */
#include <stddef.h>
#include <stdint.h>

typedef int composite_kernel_function(void*, const void*, int, void*);

/* composite/runtime/standalone/table.h */
typedef struct {{
  const char *name, *isa, *attributes, *shapes;
  composite_kernel_function* function;
  int32_t inputs, outputs, symbols, barriers;
  const uint32_t* dtypes;
  const int32_t* ranks;
  const int64_t *dims, *minimums, *divisors, *output_dims;
}} composite_kernel;
typedef struct {{
  const char *python_name, *name, *signature, *defaults;
  int32_t count;
  const composite_kernel* kernels;
}} composite_op;
typedef void composite_raise(const char* kind, const char** parts, int32_t count);
typedef struct {{
  int32_t version, count;
  const composite_op* ops;
  void **parallel_launch, **parallel_barrier, **alloc_workspace, **free_workspace;
  composite_raise** raise;
}} composite_table;

/* What the host gives to kernels; a library has those that its kernels use. */
extern void* __TVMBackendParallelLaunch __attribute__((weak));
extern void* __TVMBackendParallelBarrier __attribute__((weak));
extern void* __TVMBackendAllocWorkspace __attribute__((weak));
extern void* __TVMBackendFreeWorkspace __attribute__((weak));

/* What kernels call before they return an error. */
static composite_raise* raise_parts;
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {{
  if (raise_parts) raise_parts(kind, parts, count);
}}
"""

# The address of a weak symbol is no constant where there is none, so the table is filled when it is
# mapped.
_TAIL = """\
__attribute__((visibility("default"))) composite_table {table} = {{
    {version}, {count}, {ops}, NULL, NULL, NULL, NULL, &raise_parts}};

__attribute__((constructor)) static void fill_table(void) {{
  {table}.parallel_launch = &__TVMBackendParallelLaunch;
  {table}.parallel_barrier = &__TVMBackendParallelBarrier;
  {table}.alloc_workspace = &__TVMBackendAllocWorkspace;
  {table}.free_workspace = &__TVMBackendFreeWorkspace;
}}
"""


@dataclass(frozen=True)
class StandaloneKernel:
    """One kernel, whose C symbol is __tvm_ffi_<name>.

    Attributes:
        attributes: the attributes that it is for: canonical JSON.
        shapes: of its inputs, for people.
        dtypes: of inputs and outputs, as DLPack's code, and its bits from bit 8 on.
        dims: of each input; -(i + 1) is symbol i.
        output_dims: of each output, each in postfix over numbers and symbols: "s0 2 *".
    """

    name: str
    isa: str
    attributes: str
    shapes: str
    barriers: bool
    dtypes: tuple[int, ...]
    dims: tuple[tuple[int, ...], ...]
    minimums: tuple[int, ...]
    divisors: tuple[int, ...]
    output_dims: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class StandaloneOp:
    """One op. `signature` is JSON for Python; `defaults` is None where an attribute has none."""

    python_name: str
    op_name: str
    signature: str
    defaults: str | None
    kernels: tuple[StandaloneKernel, ...]


def canonical(attributes: dict[str, object]) -> str:
    """The text of an op's attributes that kernels are found by."""
    return json.dumps(attributes, sort_keys=True)


def source(name: str, ops: Sequence[StandaloneOp]) -> str:
    """The C source for library `name`."""
    parts = [_HEAD.format(name=name)]
    for i, op in enumerate(ops):
        parts += [_arrays(f"{i}_{k}", kernel) for k, kernel in enumerate(op.kernels)]
        if op.kernels:
            rows = "".join(
                f"    {_row(f'{i}_{k}', kernel)},\n" for k, kernel in enumerate(op.kernels)
            )
            parts.append(f"static const composite_kernel kernels_{i}[] = {{\n{rows}}};\n")
    rows = "".join(f"    {_op_row(i, op)},\n" for i, op in enumerate(ops))
    parts.append(f"static const composite_op ops[] = {{\n{rows}}};\n" if ops else "")
    tail = _TAIL.format(table=TABLE, version=VERSION, count=len(ops), ops="ops" if ops else "NULL")
    return "\n".join([*parts, tail])


def _arrays(suffix: str, kernel: StandaloneKernel) -> str:
    ranks = [len(dims) for dims in (*kernel.dims, *kernel.output_dims)]
    output_dims = [token for dims in kernel.output_dims for dim in dims for token in _postfix(dim)]
    return "\n".join(
        [
            f"extern composite_kernel_function __tvm_ffi_{kernel.name};",
            _array("uint32_t", f"dtypes_{suffix}", kernel.dtypes),
            _array("int32_t", f"ranks_{suffix}", ranks),
            _array("int64_t", f"dims_{suffix}", [d for dims in kernel.dims for d in dims]),
            _array("int64_t", f"minimums_{suffix}", kernel.minimums),
            _array("int64_t", f"divisors_{suffix}", kernel.divisors),
            _array("int64_t", f"output_dims_{suffix}", output_dims),
        ]
    )


def _array(kind: str, name: str, values: Sequence[int]) -> str:
    # C has no empty arrays.
    return f"static const {kind} {name}[] = {{{', '.join(map(str, values)) or '0'}}};"


def _postfix(dim: str) -> list[int]:
    """A dim: its length, and pairs of a letter and a number (an operator has 0)."""
    tokens: list[int] = []
    for word in dim.split():
        if word in ("+", "-", "*", "//", "%"):
            tokens += [ord(word[0]), 0]
        elif word.startswith("s"):
            tokens += [ord("s"), int(word[1:])]
        else:
            tokens += [ord("n"), int(word)]
    return [len(tokens) // 2, *tokens]


def _row(suffix: str, kernel: StandaloneKernel) -> str:
    texts = (kernel.name, kernel.isa, kernel.attributes, kernel.shapes)
    counts = (len(kernel.dims), len(kernel.output_dims), len(kernel.minimums), int(kernel.barriers))
    arrays = ("dtypes", "ranks", "dims", "minimums", "divisors", "output_dims")
    fields = [
        *map(_text, texts),
        f"__tvm_ffi_{kernel.name}",
        *map(str, counts),
        *(f"{array}_{suffix}" for array in arrays),
    ]
    return "{" + ", ".join(fields) + "}"


def _op_row(i: int, op: StandaloneOp) -> str:
    kernels = f"kernels_{i}" if op.kernels else "NULL"
    texts = (op.python_name, op.op_name, op.signature)
    defaults = "NULL" if op.defaults is None else _text(op.defaults)
    return "{" + ", ".join([*map(_text, texts), defaults, str(len(op.kernels)), kernels]) + "}"


def _text(text: str) -> str:
    """A literal of C. An octal escape has three digits, whatever comes behind it."""
    codes = text.encode()
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in codes)
    return f'"{"".join(plain)}"'
