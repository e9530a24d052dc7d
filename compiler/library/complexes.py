"""Complex numbers: their parts, and making them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import COMPLEX, FLOATING, INTEGER, real_dtype
from composite.compiler.library.names import public


@public("tf.complex", "tf.dtypes.complex")
def complex_(real: Any, imag: Any, name: Any = None) -> Any:
    """Real + 1j * imag, of float32 or of float64."""
    real = tf.convert_to_tensor(real)
    imag = tf.convert_to_tensor(imag)
    if real.dtype == tf.float32 and imag.dtype == tf.float32:
        return tf.raw_ops.Complex(real=real, imag=imag, Tout=tf.complex64, name=name)
    if real.dtype == tf.float64 and imag.dtype == tf.float64:
        return tf.raw_ops.Complex(real=real, imag=imag, Tout=tf.complex128, name=name)
    raise TypeError(
        f"tf.complex takes two tensors of float32 or two of float64, not {real.dtype} and "
        f"{imag.dtype}"
    )


@public("tf.math.real")
def real(input: Any, name: Any = None) -> Any:
    """The real part; a tensor of real numbers is itself."""
    x = tf.convert_to_tensor(input)
    if x.dtype in COMPLEX:
        return tf.raw_ops.Real(input=x, Tout=real_dtype(x.dtype), name=name)
    if x.dtype not in FLOATING and x.dtype not in INTEGER:
        raise ValueError(f"tf.math.real takes numbers, not {x.dtype}")
    return x


@public("tf.math.imag")
def imag(input: Any, name: Any = None) -> Any:
    """The imaginary part; of real numbers zeros."""
    x = tf.convert_to_tensor(input)
    if x.dtype in COMPLEX:
        return tf.raw_ops.Imag(input=x, Tout=real_dtype(x.dtype), name=name)
    return tf.raw_ops.ZerosLike(x=x, name=name)


@public("tf.math.angle")
def angle(input: Any, name: Any = None) -> Any:
    """The angle, in radians; of a negative real number pi."""
    x = tf.convert_to_tensor(input)
    if x.dtype in COMPLEX:
        return tf.raw_ops.Angle(input=x, Tout=real_dtype(x.dtype), name=name)
    pi = 3.141592653589793 * tf.raw_ops.OnesLike(x=x)
    return tf.raw_ops.SelectV2(condition=x < 0, t=pi, e=tf.raw_ops.ZerosLike(x=x), name=name)


@public("tf.math.conj")
def conj(x: Any, name: Any = None) -> Any:
    """The complex conjugate; a tensor of real numbers is itself."""
    x = tf.convert_to_tensor(x)
    if x.dtype in COMPLEX:
        return tf.raw_ops.Conj(input=x, name=name)
    if x.dtype not in FLOATING and x.dtype not in INTEGER:
        raise ValueError(f"tf.math.conj takes numbers, not {x.dtype}")
    return x
