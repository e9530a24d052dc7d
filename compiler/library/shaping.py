"""Functions of tf that move, copy, convert and make tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import COMPLEX
from composite.compiler.library.names import public


@public("tf.identity")
def identity(input: Any, name: Any = None) -> Any:
    """The same values, as another tensor."""
    return tf.raw_ops.Identity(input=input, name=name)


@public("tf.stop_gradient")
def stop_gradient(input: Any, name: Any = None) -> Any:
    """The same values, through which no gradient flows."""
    return tf.raw_ops.StopGradient(input=input, name=name)


@public("tf.cast")
def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """The values as another dtype; a tensor that has it is itself."""
    x = tf.convert_to_tensor(x)
    if x.dtype == dtype:
        return x
    return tf.raw_ops.Cast(x=x, DstT=dtype, name=name)


@public("tf.reshape")
def reshape(tensor: Any, shape: Any, name: Any = None) -> Any:
    """The elements in another shape; one dim may be -1."""
    return tf.raw_ops.Reshape(tensor=tensor, shape=shape, name=name)


@public("tf.expand_dims")
def expand_dims(input: Any, axis: Any, name: Any = None) -> Any:
    """Insert an axis of size 1."""
    return tf.raw_ops.ExpandDims(input=input, axis=axis, name=name)


@public("tf.squeeze")
def squeeze(input: Any, axis: Any = None, name: Any = None) -> Any:
    """Remove the given axes, of size 1; by default all of size 1."""
    if axis is None:
        return tf.raw_ops.Squeeze(input=input, name=name)
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    return tf.raw_ops.Squeeze(input=input, axis=axes, name=name)


@public("tf.transpose")
def transpose(a: Any, perm: Any = None, conjugate: Any = False, name: Any = "transpose") -> Any:
    """Permute the axes, by default into the reverse order."""
    a = tf.convert_to_tensor(a)
    if perm is None:
        perm = tf.raw_ops.Range(start=a.shape.rank - 1, limit=-1, delta=-1)
    if conjugate and a.dtype in COMPLEX:
        return tf.raw_ops.ConjugateTranspose(x=a, perm=perm, name=name)
    return tf.raw_ops.Transpose(x=a, perm=perm, name=name)


@public("tf.concat")
def concat(values: Any, axis: Any, name: Any = "concat") -> Any:
    """Join a list of tensors along an axis."""
    if len(values) == 1:
        return tf.raw_ops.Identity(input=values[0], name=name)
    return tf.raw_ops.ConcatV2(values=values, axis=axis, name=name)


@public("tf.stack")
def stack(values: Any, axis: Any = 0, name: Any = "stack") -> Any:
    """Join a list of tensors of one shape along a new axis."""
    return tf.raw_ops.Pack(values=values, axis=axis, name=name)


@public("tf.shape")
def shape(input: Any, out_type: Any = None, name: Any = None) -> Any:
    """The shape as a tensor, of int32 by default."""
    return tf.raw_ops.Shape(
        input=input, out_type=tf.int32 if out_type is None else out_type, name=name
    )


@public("tf.fill")
def fill(dims: Any, value: Any, name: Any = None, layout: Any = None) -> Any:
    """A tensor of the given shape, every element of it `value`."""
    if layout is not None:
        raise ValueError("tf.fill: `layout` is not supported in the body of a composite")
    return tf.raw_ops.Fill(dims=dims, value=value, name=name)


@public("tf.zeros_like")
def zeros_like(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Any:
    """Zeros in the shape of a tensor, of its dtype by default."""
    if layout is not None:
        raise ValueError("tf.zeros_like: `layout` is not supported in the body of a composite")
    if dtype is None:
        return tf.raw_ops.ZerosLike(x=input, name=name)
    zero = tf.raw_ops.Cast(x=0, DstT=dtype)
    return tf.raw_ops.Fill(dims=tf.raw_ops.Shape(input=input), value=zero, name=name)


@public("tf.ones_like")
def ones_like(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Any:
    """Ones in the shape of a tensor, of its dtype by default."""
    if layout is not None:
        raise ValueError("tf.ones_like: `layout` is not supported in the body of a composite")
    if dtype is None:
        return tf.raw_ops.OnesLike(x=input, name=name)
    one = tf.raw_ops.Cast(x=1, DstT=dtype)
    return tf.raw_ops.Fill(dims=tf.raw_ops.Shape(input=input), value=one, name=name)


def exchange_with_last(axis: Any, rank: Any) -> Any:
    """Return the permutation of `rank` axes that exchanges one with the last."""
    if axis < -rank or axis >= rank:
        raise ValueError(f"the axis {axis} is not in the range [{-rank}, {rank})")
    axis = axis % rank
    pieces = [
        tf.raw_ops.Range(start=0, limit=axis, delta=1),
        [rank - 1],
        tf.raw_ops.Range(start=axis + 1, limit=rank - 1, delta=1),
        [axis],
    ]
    return tf.raw_ops.ConcatV2(values=pieces, axis=0)
