"""The contents of lookup tables, and nodes that make tables of them anew.

A table is known by its handle alone: which Python object made it, from which file or checkpoint,
does not matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.binding.records import NodeDef, attr_value, record

_STATIC, _MUTABLE = "AnonymousHashTable", "AnonymousMutableHashTable"
_OF_TENSORS, _DENSE = "AnonymousMutableHashTableOfTensors", "AnonymousMutableDenseHashTable"

_Key = Any  # a number or a text, or a tuple of them
_MOST = 1 << 10  # texts of a constant


class Contents(NamedTuple):
    """What a table holds.

    Attributes:
        keys: in order.
        values: one for each key.
        reserved: keys that a dense table takes for itself, and refuses to look up.
    """

    keys: Any
    values: Any
    reserved: list[Any]

    def __str__(self) -> str:
        told = [f"{_dtype(x).name}{[*x.shape[1:]] or ''}" for x in (self.keys, self.values)]
        return f"a table of {len(self.keys)} entries, {' to '.join(told)}"


def contents(handle: Any, key_dtype: tf.DType, value_dtype: tf.DType) -> Contents:
    """What a table holds now. tf.errors.OpError if it is not initialized, or of other dtypes."""
    sized = tf.raw_ops.LookupTableSizeV2(table_handle=handle)
    exported = tf.raw_ops.LookupTableExportV2(
        table_handle=handle, Tkeys=key_dtype, Tvalues=value_dtype
    )
    keys, values = exported.keys.numpy(), exported.values.numpy()
    if len(keys) > int(sized):  # a dense table, which exports its free places, too
        keys, values = _as_looked_up(handle, keys, values)
    rows = dict(zip(_rows(keys), range(len(keys)), strict=True))
    reserved = []
    while len(rows) > int(sized):
        row = _first_refused(handle, list(rows), keys, values)
        reserved.append(keys[rows.pop(row)])
    order = [rows[row] for row in sorted(rows)]
    return Contents(keys[order], values[order], reserved)


def _as_looked_up(handle: Any, keys: Any, values: Any) -> tuple[Any, Any]:
    """What a dense table exports, in the shapes that it takes and returns.

    It exports a number as a vector of one.
    """
    ranks = [(0, 1) if x.shape[1:] == (1,) else (x.ndim - 1,) for x in (keys, values)]
    for key_rank, value_rank in itertools.product(*ranks):
        asked = tf.zeros([0, *keys.shape[1 : 1 + key_rank]], _dtype(keys))
        default = np.zeros(values.shape[1 : 1 + value_rank], values.dtype)
        try:
            tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=asked, default_value=default)
        except tf.errors.InvalidArgumentError:
            continue
        return keys.reshape(len(keys), *asked.shape[1:]), values.reshape(len(keys), *default.shape)
    raise ValueError(f"a table takes no keys of the shape that it exports, {keys.shape[1:]}")


def nodes(name: str, held: Contents) -> list[NodeDef]:
    """Nodes of a function that make a table; the last one, `name`, is the handle of it, filled.

    Each call makes another table, which lives as long as its handle.
    """
    keys, values = _array(f"{name}/keys", held.keys), _array(f"{name}/values", held.values)
    dtypes = [_dtype(held.keys), _dtype(held.values)]
    made, inputs = _made(f"{name}/table", held)
    for attr, dtype in zip(("key_dtype", "value_dtype"), dtypes, strict=True):
        made.attr[attr].CopyFrom(attr_value(dtype))
    if made.op == _STATIC:
        filled = record("InitializeTableV2", f"{name}/filled", Tkey=dtypes[0], Tval=dtypes[1])
    else:
        filled = record("LookupTableInsertV2", f"{name}/filled", Tin=dtypes[0], Tout=dtypes[1])
    table = f"{made.name}:table_handle:0"
    filled.input.extend([table, f"{keys[-1].name}:output:0", f"{values[-1].name}:output:0"])
    handle = record("Identity", name, T=tf.resource)
    handle.input.extend([table, f"^{filled.name}"])
    return [*inputs, *keys, *values, made, filled, handle]


def _made(name: str, held: Contents) -> tuple[Any, list[NodeDef]]:
    """The node of an empty table, and its inputs: of a kind that serves the same calls."""
    shape = tf.TensorShape(held.values.shape[1:])
    if held.reserved:  # a dense table, which alone refuses keys
        inputs = [_constant(f"{name}_{k}", key) for k, key in enumerate(_two_reserved(held))]
        buckets = 1 << max(2, (2 * len(held.keys)).bit_length())
        made = record(_DENSE, name, value_shape=shape, initial_num_buckets=buckets)
        made.attr["max_load_factor"].f = 0.8
        made.input.extend(f"{x.name}:output:0" for x in inputs)
        return made, inputs
    if shape.rank:
        return record(_OF_TENSORS, name, value_shape=shape), []
    return record(_STATIC if len(held.keys) else _MUTABLE, name), []  # no static one is empty


def _array(name: str, array: Any) -> list[NodeDef]:
    """Nodes of which the last is an array: of many texts, the parts of one.

    TensorFlow takes long to optimize a graph that has a constant of many.
    """
    if array.dtype != object or array.size < _MOST:
        return [_constant(name, array)]
    sizes = np.array([len(text) for text in array.flat], np.int64).reshape(array.shape)
    starts = (np.cumsum(sizes) - sizes.ravel()).reshape(array.shape)
    inputs = [
        _constant(f"{name}/joined", np.array(b"".join(array.flat), object)),
        _constant(f"{name}/starts", starts),
        _constant(f"{name}/sizes", sizes),
    ]
    parts = record("Substr", name, T=tf.int64, unit="BYTE")
    parts.input.extend(f"{x.name}:output:0" for x in inputs)
    return [*inputs, parts]


def _two_reserved(held: Contents) -> list[Any]:
    """The reserved keys, or the one and another that the table does not have."""
    taken = {*_rows(held.keys), *_rows(np.array(held.reserved, held.keys.dtype))}
    numbers = range(len(taken) + 1)
    if held.keys.dtype == object:
        others: Sequence[Any] = [b"composite_no_key_%d" % k for k in numbers]
    else:
        others = [np.iinfo(held.keys.dtype).min + k for k in numbers]
    shape = held.keys.shape[1:]
    spare = (np.full(shape, other, held.keys.dtype) for other in others)
    free = next(one for one in spare if _rows(one[None])[0] not in taken)
    return [*held.reserved, free][:2]


def _first_refused(handle: Any, rows: Sequence[_Key], keys: Any, values: Any) -> _Key:
    """The first of these keys that a dense table refuses to look up; there is one."""
    default = np.zeros(values.shape[1:], values.dtype)

    def refuses(some: Sequence[_Key]) -> bool:
        asked = np.array(some, keys.dtype).reshape(-1, *keys.shape[1:])
        try:
            tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=asked, default_value=default)
        except tf.errors.InvalidArgumentError:
            return True
        return False

    low, high = 0, len(rows)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refuses(rows[low:middle]) else (middle, high)
    return rows[low]


def _rows(keys: Any) -> list[_Key]:
    return list(keys.tolist() if keys.ndim == 1 else map(tuple, keys.tolist()))


def _dtype(array: Any) -> tf.DType:
    return tf.string if array.dtype == object else tf.as_dtype(array.dtype)


def _constant(name: str, array: Any) -> NodeDef:
    value = tf.make_tensor_proto(array, _dtype(np.asarray(array)))
    return record("Const", name, value=value, dtype=tf.as_dtype(value.dtype))
