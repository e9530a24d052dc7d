"""Element-wise arithmetic of tf.math.

Functions that are one generated op (tf.math.log, tf.square, tf.maximum, ...) need no entry.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import COMPLEX, INTEGER
from composite.compiler.library.names import public


@public("tf.add", "tf.math.add")
def add(x: Any, y: Any, name: Any = None) -> Any:
    """The sum x + y of numbers."""
    return tf.raw_ops.AddV2(x=x, y=y, name=name)


@public("tf.subtract", "tf.math.subtract")
def subtract(x: Any, y: Any, name: Any = None) -> Any:
    """The difference x - y."""
    return tf.raw_ops.Sub(x=x, y=y, name=name)


@public("tf.multiply", "tf.math.multiply")
def multiply(x: Any, y: Any, name: Any = None) -> Any:
    """The product x * y."""
    return tf.raw_ops.Mul(x=x, y=y, name=name)


@public("tf.divide", "tf.math.divide")
def divide(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient x / y as Python divides: integers as floats."""
    return x / y


@public("tf.truediv", "tf.math.truediv")
def truediv(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient x / y as Python divides: integers as floats."""
    return x / y


@public("tf.math.floordiv")
def floordiv(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient x // y, rounded towards minus infinity."""
    return tf.raw_ops.FloorDiv(x=x, y=y, name=name)


@public("tf.math.divide_no_nan")
def divide_no_nan(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient x / y of floating point numbers, and 0 where y is 0."""
    return tf.raw_ops.DivNoNan(x=x, y=y, name=name)


@public("tf.math.multiply_no_nan")
def multiply_no_nan(x: Any, y: Any, name: Any = None) -> Any:
    """The product x * y, and 0 where y is 0, even if x is infinite or NaN."""
    return tf.raw_ops.MulNoNan(x=x, y=y, name=name)


@public("tf.math.reciprocal_no_nan")
def reciprocal_no_nan(x: Any, name: Any = None) -> Any:
    """The reciprocal 1 / x, and 0 where x is 0."""
    return tf.raw_ops.DivNoNan(x=1.0, y=x, name=name)


@public("tf.pow", "tf.math.pow")
def pow_(x: Any, y: Any, name: Any = None) -> Any:
    """The power x ** y."""
    return tf.raw_ops.Pow(x=x, y=y, name=name)


@public("tf.abs", "tf.math.abs")
def abs_(x: Any, name: Any = None) -> Any:
    """The absolute value; of complex numbers a real one."""
    x = tf.convert_to_tensor(x)
    if x.dtype == tf.complex64:
        return tf.raw_ops.ComplexAbs(x=x, Tout=tf.float32, name=name)
    if x.dtype == tf.complex128:
        return tf.raw_ops.ComplexAbs(x=x, Tout=tf.float64, name=name)
    return tf.raw_ops.Abs(x=x, name=name)


@public("tf.sign", "tf.math.sign")
def sign(x: Any, name: Any = None) -> Any:
    """-1, 0 or 1; of complex numbers x / |x|."""
    x = tf.convert_to_tensor(x)
    if x.dtype in COMPLEX:
        return tf.raw_ops.DivNoNan(x=x, y=tf.cast(tf.abs(x), x.dtype), name=name)
    return tf.raw_ops.Sign(x=x, name=name)


@public("tf.exp", "tf.math.exp")
def exp(x: Any, name: Any = None) -> Any:
    """The exponential function."""
    return tf.raw_ops.Exp(x=x, name=name)


@public("tf.sqrt", "tf.math.sqrt")
def sqrt(x: Any, name: Any = None) -> Any:
    """The square root."""
    return tf.raw_ops.Sqrt(x=x, name=name)


@public("tf.math.rsqrt")
def rsqrt(x: Any, name: Any = None) -> Any:
    """1 / sqrt(x)."""
    return tf.raw_ops.Rsqrt(x=x, name=name)


@public("tf.round", "tf.math.round")
def round_(x: Any, name: Any = None) -> Any:
    """Round halves to even; integers stay."""
    x = tf.convert_to_tensor(x)
    if x.dtype in INTEGER:
        return x
    return tf.raw_ops.Round(x=x, name=name)


@public("tf.floor", "tf.math.floor")
def floor(x: Any, name: Any = None) -> Any:
    """The largest whole number that is not above x."""
    return tf.raw_ops.Floor(x=x, name=name)


@public("tf.math.ceil")
def ceil(x: Any, name: Any = None) -> Any:
    """The smallest whole number that is not below x."""
    return tf.raw_ops.Ceil(x=x, name=name)


@public("tf.clip_by_value")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: Any = None) -> Any:
    """min(max(t, clip_value_min), clip_value_max), which have to broadcast to the shape of t."""
    t = tf.convert_to_tensor(t)
    below = tf.raw_ops.Minimum(x=t, y=clip_value_max)
    clipped = tf.raw_ops.Maximum(x=below, y=clip_value_min, name=name)
    if not clipped.shape.is_compatible_with(t.shape):
        raise ValueError(
            f"tf.clip_by_value: the limits would broadcast {t.shape} to the shape {clipped.shape}"
        )
    return clipped
