"""Making tensors: zeros, ones, ranges, identity matrices, one-hot vectors, masks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import whole
from composite.compiler.library.names import public

# The dtype that numbers of several dtypes meet in, by TensorFlow's order.
_RANGE_ORDER = (tf.float64, tf.float32, tf.bfloat16, tf.float16, tf.int64, tf.int32)


@public("tf.zeros")
def zeros(shape: Any, dtype: Any = tf.float32, name: Any = None, layout: Any = None) -> Any:
    """Zeros (of bool False, of string empty ones) in a shape."""
    if layout is not None:
        raise ValueError("tf.zeros: `layout` is not supported in the body of a composite")
    if dtype == tf.bool:
        return tf.raw_ops.Fill(dims=_dims(shape), value=False, name=name)
    if dtype == tf.string:
        return tf.raw_ops.Fill(dims=_dims(shape), value="", name=name)
    return tf.raw_ops.Fill(dims=_dims(shape), value=tf.cast(0, dtype), name=name)


@public("tf.ones")
def ones(shape: Any, dtype: Any = tf.float32, name: Any = None, layout: Any = None) -> Any:
    """Ones (of bool True) in a shape."""
    if layout is not None:
        raise ValueError("tf.ones: `layout` is not supported in the body of a composite")
    if dtype == tf.bool:
        return tf.raw_ops.Fill(dims=_dims(shape), value=True, name=name)
    return tf.raw_ops.Fill(dims=_dims(shape), value=tf.cast(1, dtype), name=name)


def _dims(shape: Any) -> Any:
    """Return a shape, or the one dim of a vector, as a vector of integers."""
    if isinstance(shape, (list, tuple, tf.TensorShape)):
        return shape  # as it is, TensorFlow sees the dims that are known
    dims = tf.convert_to_tensor(shape)
    return tf.raw_ops.Reshape(tensor=dims, shape=[-1]) if dims.shape.rank == 0 else dims


@public("tf.eye", "tf.linalg.eye")
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = tf.float32,
    name: Any = None,
) -> Any:
    """Identity matrices: ones on the diagonal, zeros elsewhere."""
    columns = num_rows if num_columns is None else num_columns
    size = tf.cast(tf.raw_ops.Minimum(x=num_rows, y=columns), tf.int32)
    batch = tf.cast([] if batch_shape is None else batch_shape, tf.int32)
    diagonal = ones(tf.concat([batch, [size]], 0), dtype)
    if num_columns is None:
        return tf.linalg.diag(diagonal)
    rows, columns = tf.cast(num_rows, tf.int32), tf.cast(columns, tf.int32)
    matrices = zeros(tf.concat([batch, [rows, columns]], 0), dtype)
    return tf.linalg.set_diag(matrices, diagonal)


def _of_dtype(value: Any, dtype: Any) -> Any:
    """Return a tensor of a value, of a number in the given dtype; None of none."""
    if value is None:
        return None
    if isinstance(value, tf.Tensor):
        if dtype is not None and value.dtype != dtype:
            raise TypeError(f"tf.one_hot: a value of {value.dtype} is not of dtype {dtype}")
        return value
    return tf.convert_to_tensor(value, dtype)


@public("tf.one_hot")
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: Any = None,
) -> Any:
    """A new axis of `depth` elements: on_value at the index, off_value elsewhere."""
    on_value = _of_dtype(on_value, dtype)
    off_value = _of_dtype(off_value, dtype)
    if dtype is not None:
        result = dtype
    elif on_value is not None:
        result = on_value.dtype
    else:
        result = tf.float32 if off_value is None else off_value.dtype
    on = tf.cast(1, result) if on_value is None else on_value
    off = tf.cast(0, result) if off_value is None else off_value
    return tf.raw_ops.OneHot(
        indices=indices,
        depth=depth,
        on_value=on,
        off_value=off,
        axis=-1 if axis is None else axis,
        name=name,
    )


@public("tf.range")
def range_(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: Any = "range"
) -> Any:
    """The numbers from start up to limit, which is not one of them; of one dtype all."""
    if limit is None:
        limit = start
        start = 0
    if dtype is None:
        start = tf.convert_to_tensor(start)
        limit = tf.convert_to_tensor(limit)
        delta = tf.convert_to_tensor(delta)
        dtype = _widest(start.dtype, limit.dtype, delta.dtype)
    return tf.raw_ops.Range(
        start=tf.cast(start, dtype), limit=tf.cast(limit, dtype), delta=tf.cast(delta, dtype)
    )


def _widest(first: Any, second: Any, third: Any) -> Any:
    """Return the widest of three dtypes."""
    for dtype in (first, second, third):
        if dtype not in _RANGE_ORDER:
            raise TypeError(f"tf.range takes integers or floating point numbers, not {dtype}")
    for dtype in _RANGE_ORDER:
        if dtype in (first, second, third):
            return dtype
    return first


@public("tf.linspace")
def linspace(start: Any, stop: Any, num: Any, name: Any = None, axis: Any = 0) -> Any:
    """Numbers at equal distances from start to stop, both among them, along a new axis."""
    start = tf.convert_to_tensor(start)
    stop = tf.convert_to_tensor(stop, start.dtype)
    num = whole(num)
    shape = tf.raw_ops.BroadcastArgs(s0=tf.shape(start), s1=tf.shape(stop))
    start = tf.expand_dims(tf.broadcast_to(start, shape), axis)
    stop = tf.expand_dims(tf.broadcast_to(stop, shape), axis)
    rank = start.shape.rank
    position = axis if axis >= 0 else rank + axis
    steps = tf.raw_ops.Maximum(x=num - 1, y=1)
    distance = (stop - start) / tf.cast(steps, stop.dtype)
    first = tf.cast(start, distance.dtype)
    last = tf.cast(stop, distance.dtype)
    count = tf.raw_ops.SelectV2(condition=num >= 0, t=steps, e=-1)
    inner = tf.cast(range_(1, count, dtype=tf.int64), distance.dtype)
    inner_shape = tf.raw_ops.SelectV2(
        condition=tf.raw_ops.Equal(x=position, y=range_(rank)),
        t=tf.raw_ops.Maximum(x=num - 2, y=0),
        e=1,
    )
    between = first + distance * tf.reshape(inner, inner_shape)
    numbers = tf.concat([first, between, last], axis=position)
    dims = tf.shape(start)
    size = tf.concat([dims[:position], tf.reshape(num, [1]), dims[position + 1 :]], axis=0)
    return tf.raw_ops.Slice(input=numbers, begin=tf.zeros_like(dims), size=size)


@public("tf.sequence_mask")
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = tf.bool, name: Any = None) -> Any:
    """For each length a row of maxlen (by default the longest) elements: true up to the length."""
    lengths = tf.convert_to_tensor(lengths)
    if maxlen is None:
        maxlen = tf.raw_ops.Maximum(x=0, y=tf.reduce_max(lengths))
    else:
        maxlen = tf.convert_to_tensor(maxlen)
        if maxlen.shape.rank != 0:
            raise ValueError(f"tf.sequence_mask: maxlen is a scalar, not of shape {maxlen.shape}")
    row = tf.raw_ops.Range(
        start=tf.cast(0, maxlen.dtype), limit=maxlen, delta=tf.cast(1, maxlen.dtype)
    )
    mask = row < tf.cast(tf.expand_dims(lengths, -1), maxlen.dtype)
    return mask if dtype is None else tf.cast(mask, dtype)


@public("tf.meshgrid", rest="args")
def meshgrid(args: Any, indexing: Any = "xy", name: Any = None) -> Any:
    """The coordinates of a grid of vectors: for each vector a tensor of the grid's shape.

    With "xy" the first two axes are exchanged, as rows and columns of pictures are.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"tf.meshgrid: indexing is 'xy' or 'ij', not {indexing}")
    count = len(args)
    first = 1 if indexing == "xy" and count > 1 else 0
    grid: Any = []
    sizes: Any = []
    for index in range(count):
        axis = 1 - index if index < 2 and first else index
        shape = [1] * axis + [-1] + [1] * (count - axis - 1)
        grid = grid + [tf.reshape(args[index], shape)]
    for axis in range(count):
        source = args[1 - axis if axis < 2 and first else axis]
        sizes = sizes + [tf.raw_ops.Size(input=source)]
    scale = ones(sizes, tf.convert_to_tensor(args[0]).dtype)
    return [one * scale for one in grid]
