"""What a library says of its kernels to processes without TensorFlow, from the kernels' records.

Kernels that take inputs for constant are left out: who packs a constant, and when, is TensorFlow's
business. So are ops whose kernels cannot be told by the dtypes and shapes of flat inputs, and
kernels of more symbols or dims than a call has room for, and kernels for GPUs.

Not for: how that is written down (compiler/emit/standalone.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.binding.kernel_record import KernelRecord
from composite.binding.records import NodeDef, python_value
from composite.binding.typed_record import Dims
from composite.compiler.emit.library import LibraryKernel, LibraryOp
from composite.compiler.emit.standalone import StandaloneKernel, StandaloneOp, canonical
from composite.compiler.schema import ArgSpec, OpSchema

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6  # DLDataTypeCode
_MOST_SYMBOLS, _MOST_DIMS = 64, 32  # as standalone/table.h has them


def tables(ops: Sequence[LibraryOp], kernels: Sequence[LibraryKernel]) -> list[StandaloneOp]:
    """Each op, with those of the kernels that need nothing of TensorFlow."""
    return [_op(op, [kernel for kernel in kernels if kernel.op_name == op.op_name]) for op in ops]


def _op(op: LibraryOp, kernels: Sequence[LibraryKernel]) -> StandaloneOp:
    schema = op.schema
    defaults = {a.name: _plain(a.default) for a in schema.attrs if a.has_default}
    described = [_kernel(schema, kernel) for kernel in kernels] if _is_flat(schema) else []
    signature = {
        "doc": op.doc,
        "inputs": [[arg.name, arg.is_list] for arg in schema.inputs],
        "attributes": [[a.name, a.type, a.has_default, defaults.get(a.name)] for a in schema.attrs],
    }
    return StandaloneOp(
        python_name=op.python_name,
        op_name=op.op_name,
        signature=json.dumps(signature),
        defaults=canonical(defaults) if len(defaults) == len(schema.attrs) else None,
        kernels=tuple(kernel for kernel in described if kernel is not None),
    )


def _is_flat(schema: OpSchema) -> bool:
    """Whether flat inputs tell which tensors are in which list."""
    lengths = {arg.number_attr or arg.type_list_attr for arg in schema.inputs if arg.is_list}
    return len(lengths) <= 1


def _kernel(schema: OpSchema, kernel: LibraryKernel) -> StandaloneKernel | None:
    record = KernelRecord.parse(NodeDef.FromString(kernel.record))
    largest = max((dims.count(",") + 1 for dims in record.out_shapes), default=0)
    if (
        kernel.image
        or record.constants
        or len(record.minimums) > _MOST_SYMBOLS
        or largest > _MOST_DIMS
    ):
        return None
    dtypes = [
        dtype for args in (schema.inputs, schema.outputs) for dtype in _dtypes(args, record.attrs)
    ]
    given = {a.name: _plain(python_value(record.attrs[a.name])) for a in schema.attrs}
    return StandaloneKernel(
        name=kernel.name,
        isa=record.isa,
        attributes=canonical(given),
        shapes=", ".join(map(_described, dtypes, record.in_shapes)),
        barriers=record.barriers,
        dtypes=tuple(map(_key, dtypes)),
        dims=tuple(tuple(map(_dim, dims)) for dims in record.in_shapes),
        minimums=record.minimums,
        divisors=record.divisors,
        output_dims=tuple(tuple(filter(None, dims.split(","))) for dims in record.out_shapes),
    )


def _dtypes(args: Sequence[ArgSpec], attrs: Mapping[str, Any]) -> Iterator[tf.DType]:
    for arg in args:
        if arg.type_list_attr:
            yield from map(tf.as_dtype, attrs[arg.type_list_attr].list.type)
            continue
        one = tf.as_dtype(attrs[arg.type_attr].type if arg.type_attr else arg.dtype)
        yield from [one] * (attrs[arg.number_attr].i if arg.number_attr else 1)


def _key(dtype: tf.DType) -> int:
    """As DtypeKey of standalone/function.h has it; the runtime's ToAbi has the same codes."""
    if dtype == tf.bool:
        code = _BOOL
    elif dtype == tf.bfloat16:
        code = _BFLOAT
    elif dtype.is_floating:
        code = _FLOAT
    else:
        code = _UINT if dtype.is_unsigned else _INT
    return code | 8 * dtype.size << 8


def _dim(dim: int | str) -> int:
    return dim if isinstance(dim, int) else -1 - int(dim[1:])


def _described(dtype: tf.DType, dims: Dims) -> str:
    return f"{dtype.name}[{','.join(map(str, dims))}]"


def _plain(value: Any) -> Any:
    """An attribute's value as JSON has it."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, tf.TensorShape):
        return None if value.rank is None else value.as_list()
    return value if isinstance(value, bool | int | float | str) else repr(value)
