"""Norms, clipping by norms, and the moments that normalizations are made of."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public

_INFINITY = math.inf


@public("tf.norm", "tf.linalg.norm")
def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: Any = None
) -> Any:
    """The norm of vectors along an axis, of matrices in two, or of all elements together.

    `ord` is "euclidean", 1, 2, infinity or another number above 0 for vectors; "euclidean", "fro",
    1 or infinity for matrices.
    """
    x = tf.convert_to_tensor(tensor)
    axes: Any = axis if axis is None or isinstance(axis, (list, tuple)) else [axis]
    is_matrix = axes is not None and len(axes) == 2
    if is_matrix and ord not in ("euclidean", "fro", 1, _INFINITY):
        raise ValueError(f"tf.norm: the order of a norm of matrices cannot be {ord} here")
    if is_matrix and axes[0] == axes[1]:
        raise ValueError(f"tf.norm: the two axes of matrices are not one: {axes}")
    # `==`, unlike `in`, is decided where the body is compiled, and one branch alone is compiled.
    if ord == "euclidean" or ord == "fro" or (ord == 2 and not is_matrix):  # noqa: PLR1714
        value = tf.sqrt(tf.reduce_sum(x * tf.math.conj(x), axes, keepdims=True))
    elif ord == 1:
        value = tf.reduce_sum(tf.abs(x), None if axes is None else axes[0], keepdims=True)
        if is_matrix:
            value = tf.reduce_max(value, axes[1], keepdims=True)
    elif ord == _INFINITY:
        value = tf.abs(x)
        if is_matrix:
            value = tf.reduce_sum(value, axes[1], keepdims=True)
        value = tf.reduce_max(value, None if axes is None else axes[0], keepdims=True)
    elif ord <= 0:
        raise ValueError(f"tf.norm: the order of a norm is above 0, and {ord} is not")
    else:
        powers = tf.raw_ops.Pow(x=tf.abs(x), y=ord)
        value = tf.raw_ops.Pow(x=tf.reduce_sum(powers, axes, keepdims=True), y=1.0 / ord)
    return value if keepdims else tf.squeeze(value, axes)


@public("tf.linalg.normalize")
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: Any = None) -> Any:
    """The tensor over its norm, and the norm."""
    tensor = tf.convert_to_tensor(tensor)
    length = tf.cast(norm(tensor, ord, axis, keepdims=True), tensor.dtype)
    return tensor / length, length


@public("tf.clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: Any = None) -> Any:
    """The tensor, scaled down where its norm over the axes is above clip_norm."""
    t = tf.convert_to_tensor(t)
    if isinstance(clip_norm, tf.Tensor):
        bound = tf.cast(tf.raw_ops.Maximum(x=clip_norm, y=0), t.dtype)
    else:
        bound = clip_norm if clip_norm > 0 else 0.0
    squares = tf.reduce_sum(t * t, axes, keepdims=True)
    positive = squares > 0
    safe = tf.raw_ops.SelectV2(condition=positive, t=squares, e=tf.ones_like(squares))
    length = tf.raw_ops.SelectV2(condition=positive, t=tf.raw_ops.Sqrt(x=safe), e=squares)
    scaled = t * bound
    if not scaled.shape.is_compatible_with(t.shape):
        raise ValueError(
            f"tf.clip_by_norm: clip_norm would broadcast {t.shape} to the shape {scaled.shape}"
        )
    return tf.raw_ops.Identity(input=scaled / tf.raw_ops.Maximum(x=length, y=bound))


@public("tf.linalg.global_norm")
def global_norm(t_list: Any, name: Any = None) -> Any:
    """The norm of all elements of a list of tensors together."""
    halves = [tf.raw_ops.L2Loss(t=tensor) for tensor in t_list]
    half = tf.reduce_sum(tf.raw_ops.Pack(values=halves))
    return tf.raw_ops.Sqrt(x=half * 2.0)


@public("tf.clip_by_global_norm")
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: Any = None) -> Any:
    """The tensors, all scaled down by one factor if their common norm is above; and that norm."""
    length = global_norm(t_list) if use_norm is None else tf.convert_to_tensor(use_norm)
    factor = clip_norm * tf.raw_ops.Minimum(x=1.0 / length, y=tf.ones_like(length) / clip_norm)
    # A norm that is not finite makes the tensors NaN.
    scale = factor + (length - length)
    clipped = [tf.raw_ops.Identity(input=one * tf.cast(scale, one.dtype)) for one in t_list]
    return clipped, length


@public("tf.nn.moments")
def moments(x: Any, axes: Any, shift: Any = None, keepdims: Any = False, name: Any = None) -> Any:
    """Mean and variance over the axes; of float16 they are computed in float32."""
    x = tf.convert_to_tensor(x)
    wide = tf.cast(x, tf.float32) if x.dtype == tf.float16 else x
    mean = tf.reduce_mean(wide, axes, keepdims=True)
    distance = tf.raw_ops.SquaredDifference(x=wide, y=tf.raw_ops.StopGradient(input=mean))
    variance = tf.reduce_mean(distance, axes, keepdims=True)
    if not keepdims:
        mean = tf.squeeze(mean, axes)
        variance = tf.squeeze(variance, axes)
    return tf.cast(mean, x.dtype), tf.cast(variance, x.dtype)


@public("tf.nn.weighted_moments")
def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: Any = False, name: Any = None
) -> Any:
    """Mean and variance over the axes, of elements that count as often as their weights say."""
    x = tf.convert_to_tensor(x)
    wide = tf.cast(x, tf.float32) if x.dtype == tf.float16 else x
    weights = tf.cast(frequency_weights, wide.dtype)
    total = tf.reduce_sum(weights * wide, axes, keepdims=True)
    count = tf.reduce_sum(weights + tf.zeros_like(wide), axes, keepdims=True)
    mean = tf.raw_ops.DivNoNan(x=total, y=count)
    distance = tf.raw_ops.SquaredDifference(x=wide, y=mean)
    squares = tf.reduce_sum(weights * distance, axes, keepdims=True)
    variance = tf.raw_ops.DivNoNan(x=squares, y=count)
    if not keepdims:
        mean = tf.squeeze(mean, axes)
        variance = tf.squeeze(variance, axes)
    return tf.cast(mean, x.dtype), tf.cast(variance, x.dtype)


@public("tf.nn.normalize_moments")
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: Any = None
) -> Any:
    """Mean and variance from sums: of elements, and of squared ones."""
    divisor = tf.raw_ops.Reciprocal(x=counts)
    shifted = mean_ss * divisor
    mean = shifted if shift is None else shifted + shift
    variance = variance_ss * divisor - tf.raw_ops.Square(x=shifted)
    return mean, variance


@public("tf.nn.batch_normalization")
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: Any = None,
) -> Any:
    """(x - mean) / sqrt(variance + epsilon), times scale, plus offset, which may be None each."""
    x = tf.convert_to_tensor(x)
    factor = tf.raw_ops.Rsqrt(x=variance + variance_epsilon)
    if scale is not None:
        factor = factor * scale
    constant = -mean * factor if offset is None else offset - mean * factor
    return x * tf.cast(factor, x.dtype) + tf.cast(constant, x.dtype)
