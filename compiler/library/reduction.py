"""Reductions of tf.math: sums, means, extremes, and what is made of them.

`axis` is None (all axes), an int, a list of ints, or a tensor of them.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import COMPLEX, INTEGER
from composite.compiler.library.names import public


def _axes(x: Any, axis: Any) -> Any:
    """Return the axes to reduce."""
    if axis is None:
        return tf.raw_ops.Range(start=0, limit=x.shape.rank, delta=1)
    return axis


@public("tf.reduce_sum", "tf.math.reduce_sum")
def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The sum over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.Sum(input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name)


@public("tf.reduce_mean", "tf.math.reduce_mean")
def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None
) -> Any:
    """The mean over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.Mean(input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name)


@public("tf.reduce_max", "tf.math.reduce_max")
def reduce_max(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The largest element over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.Max(input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name)


@public("tf.reduce_min", "tf.math.reduce_min")
def reduce_min(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The smallest element over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.Min(input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name)


@public("tf.reduce_prod", "tf.math.reduce_prod")
def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None
) -> Any:
    """The product over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.Prod(input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name)


@public("tf.reduce_any", "tf.math.reduce_any")
def reduce_any(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """Whether any element is true, over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.Any(input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name)


@public("tf.reduce_all", "tf.math.reduce_all")
def reduce_all(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """Whether all elements are true, over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.All(input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name)


@public("tf.math.reduce_variance")
def reduce_variance(
    input_tensor: Any,
    axis: Any = None,
    keepdims: Any = False,
    name: Any = None,
) -> Any:
    """The mean of the squared distance from the mean, over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    if x.dtype in INTEGER:
        raise TypeError(f"tf.math.reduce_variance takes real or complex numbers, not {x.dtype}")
    distance = x - reduce_mean(x, axis, keepdims=True)
    if x.dtype == tf.complex64:
        product = tf.raw_ops.Conj(input=distance) * distance
        squared = tf.raw_ops.Real(input=product, Tout=tf.float32)
    elif x.dtype == tf.complex128:
        product = tf.raw_ops.Conj(input=distance) * distance
        squared = tf.raw_ops.Real(input=product, Tout=tf.float64)
    else:
        squared = tf.raw_ops.Square(x=distance)
    return reduce_mean(squared, axis, keepdims)


@public("tf.math.reduce_std")
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """The square root of the variance, over the axes."""
    return tf.raw_ops.Sqrt(x=reduce_variance(input_tensor, axis, keepdims), name=name)


@public("tf.nn.l2_normalize", "tf.math.l2_normalize", "tf.linalg.l2_normalize")
def l2_normalize(
    x: Any, axis: Any = None, epsilon: Any = 1e-12, name: Any = None, dim: Any = None
) -> Any:
    """Scale to length 1: x / sqrt(max(sum(abs(x) ** 2), epsilon)) over the axes."""
    x = tf.convert_to_tensor(x)
    if dim is not None:
        if axis is not None:
            raise ValueError("tf.nn.l2_normalize: `dim` is the old name of `axis`: give one")
        axis = dim
    if x.dtype in COMPLEX:
        real, imag = tf.math.real(x), tf.math.imag(x)
        squares = tf.raw_ops.Square(x=real) + tf.raw_ops.Square(x=imag)
        total = reduce_sum(squares, axis, keepdims=True)
        scale = tf.raw_ops.Rsqrt(x=tf.raw_ops.Maximum(x=total, y=epsilon))
        return tf.complex(real * scale, imag * scale, name=name)
    total = reduce_sum(tf.raw_ops.Square(x=x), axis, keepdims=True)
    scale = tf.raw_ops.Rsqrt(x=tf.raw_ops.Maximum(x=total, y=epsilon))
    return tf.raw_ops.Mul(x=x, y=scale, name=name)


@public("tf.math.reduce_euclidean_norm")
def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None
) -> Any:
    """The square root of the sum of squares over the axes."""
    x = tf.convert_to_tensor(input_tensor)
    return tf.raw_ops.EuclideanNorm(
        input=x, axis=_axes(x, axis), keep_dims=bool(keepdims), name=name
    )


@public("tf.reduce_logsumexp", "tf.math.reduce_logsumexp")
def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: Any = False, name: Any = None
) -> Any:
    """log(sum(exp(x))) over the axes, by way of the largest element."""
    x = tf.convert_to_tensor(input_tensor)
    largest = reduce_max(x, axis, keepdims=True)
    finite = tf.raw_ops.SelectV2(
        condition=tf.raw_ops.IsFinite(x=largest), t=largest, e=tf.zeros_like(largest)
    )
    shift = tf.raw_ops.StopGradient(input=finite)
    total = reduce_sum(tf.raw_ops.Exp(x=tf.raw_ops.Sub(x=x, y=shift)), axis, keepdims)
    logarithm = tf.raw_ops.Log(x=total)
    if not keepdims:
        shift = tf.reshape(shift, tf.shape(logarithm))
    return tf.raw_ops.AddV2(x=logarithm, y=shift, name=name)


@public("tf.math.count_nonzero")
def count_nonzero(
    input: Any,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = tf.int64,
    name: Any = None,
) -> Any:
    """How many elements are not zero, over the axes."""
    x = tf.convert_to_tensor(input)
    if x.dtype == tf.bool:
        counted = x
    elif x.dtype == tf.string:
        counted = tf.raw_ops.NotEqual(x=x, y="")
    else:
        counted = tf.raw_ops.NotEqual(x=x, y=tf.cast(0, x.dtype))
    total = reduce_sum(tf.cast(counted, tf.int64), axis, keepdims=bool(keepdims))
    return tf.cast(total, dtype)


@public("tf.math.zero_fraction", "tf.nn.zero_fraction")
def zero_fraction(value: Any, name: Any = None) -> Any:
    """Which part of the elements is zero, as float32."""
    value = tf.convert_to_tensor(value)
    size = tf.raw_ops.Size(input=value, out_type=tf.int64)
    zeros = size - count_nonzero(value)
    return tf.cast(zeros, tf.float32) / tf.cast(size, tf.float32)


@public("tf.add_n", "tf.math.add_n")
def add_n(inputs: Any, name: Any = None) -> Any:
    """The sum of a list of tensors of one shape."""
    if len(inputs) == 1:
        return tf.raw_ops.Identity(input=inputs[0], name=name)
    return tf.raw_ops.AddN(inputs=inputs, name=name)


@public("tf.math.scalar_mul", "tf.scalar_mul")
def scalar_mul(scalar: Any, x: Any, name: Any = None) -> Any:
    """A scalar times a tensor."""
    if isinstance(scalar, tf.Tensor) and scalar.shape.rank != 0:
        raise ValueError(f"tf.math.scalar_mul takes a scalar, not a tensor of shape {scalar.shape}")
    return tf.raw_ops.Mul(x=scalar, y=x, name=name)
