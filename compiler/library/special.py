"""Special functions of tf.math: one op each, under a name that is Python.

tf.math.lgamma, digamma, erf, erfc, igamma, betainc, zeta and their like need no entry.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.acos", "tf.math.acos")
def acos(x: Any, name: Any = None) -> Any:
    """The inverse cosine."""
    return tf.raw_ops.Acos(x=x, name=name)


@public("tf.math.erfinv")
def erfinv(x: Any, name: Any = None) -> Any:
    """The inverse of the error function."""
    return tf.raw_ops.Erfinv(x=x, name=name)


@public("tf.math.erfcinv")
def erfcinv(x: Any, name: Any = None) -> Any:
    """The inverse of the complementary error function."""
    x = tf.convert_to_tensor(x)
    return -tf.raw_ops.Ndtri(x=0.5 * x) * 0.7071067811865476  # sqrt(0.5)


@public("tf.math.ndtri")
def ndtri(x: Any, name: Any = None) -> Any:
    """The inverse of the distribution function of the normal distribution."""
    return tf.raw_ops.Ndtri(x=x, name=name)


@public("tf.math.xdivy")
def xdivy(x: Any, y: Any, name: Any = None) -> Any:
    """The quotient x / y, and 0 where x is 0."""
    return tf.raw_ops.Xdivy(x=x, y=y, name=name)


@public("tf.math.xlog1py")
def xlog1py(x: Any, y: Any, name: Any = None) -> Any:
    """X * log1p(y), and 0 where x is 0."""
    return tf.raw_ops.Xlog1py(x=x, y=y, name=name)


@public("tf.math.lbeta")
def lbeta(x: Any, name: Any = None) -> Any:
    """The logarithm of the beta function of the numbers along the last axis."""
    x = tf.convert_to_tensor(x)
    logs = tf.reduce_sum(tf.raw_ops.Lgamma(x=x), axis=[-1])
    total = tf.raw_ops.Lgamma(x=tf.reduce_sum(x, axis=[-1]))
    return tf.raw_ops.Sub(x=logs, y=total, name=name)


@public("tf.math.polyval")
def polyval(coeffs: Any, x: Any, name: Any = None) -> Any:
    """The polynomial of a list of coefficients, the highest power first, at x."""
    x = tf.convert_to_tensor(x)
    if len(coeffs) < 1:
        return tf.raw_ops.ZerosLike(x=x, name=name)
    value = tf.convert_to_tensor(coeffs[0])
    for coefficient in coeffs[1:]:
        value = coefficient + value * x
    return value


@public("tf.math.special.dawsn")
def dawsn(x: Any, name: Any = None) -> Any:
    """Dawson's integral."""
    return tf.raw_ops.Dawsn(x=x, name=name)


@public("tf.math.special.expint")
def expint(x: Any, name: Any = None) -> Any:
    """The exponential integral."""
    return tf.raw_ops.Expint(x=x, name=name)


@public("tf.math.special.fresnel_cos")
def fresnel_cos(x: Any, name: Any = None) -> Any:
    """Fresnel's cosine integral."""
    return tf.raw_ops.FresnelCos(x=x, name=name)


@public("tf.math.special.fresnel_sin")
def fresnel_sin(x: Any, name: Any = None) -> Any:
    """Fresnel's sine integral."""
    return tf.raw_ops.FresnelSin(x=x, name=name)


@public("tf.math.special.spence")
def spence(x: Any, name: Any = None) -> Any:
    """Spence's integral, the dilogarithm of 1 - x."""
    return tf.raw_ops.Spence(x=x, name=name)


@public("tf.math.bessel_i0", "tf.math.special.bessel_i0")
def bessel_i0(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 0, modified, of the first kind."""
    return tf.raw_ops.BesselI0(x=x, name=name)


@public("tf.math.bessel_i0e", "tf.math.special.bessel_i0e")
def bessel_i0e(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 0, modified, of the first kind, scaled by an exponential."""
    return tf.raw_ops.BesselI0e(x=x, name=name)


@public("tf.math.bessel_i1", "tf.math.special.bessel_i1")
def bessel_i1(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 1, modified, of the first kind."""
    return tf.raw_ops.BesselI1(x=x, name=name)


@public("tf.math.bessel_i1e", "tf.math.special.bessel_i1e")
def bessel_i1e(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 1, modified, of the first kind, scaled by an exponential."""
    return tf.raw_ops.BesselI1e(x=x, name=name)


@public("tf.math.special.bessel_j0")
def bessel_j0(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 0, of the first kind."""
    return tf.raw_ops.BesselJ0(x=x, name=name)


@public("tf.math.special.bessel_j1")
def bessel_j1(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 1, of the first kind."""
    return tf.raw_ops.BesselJ1(x=x, name=name)


@public("tf.math.special.bessel_k0")
def bessel_k0(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 0, modified, of the second kind."""
    return tf.raw_ops.BesselK0(x=x, name=name)


@public("tf.math.special.bessel_k0e")
def bessel_k0e(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 0, modified, of the second kind, scaled by an exponential."""
    return tf.raw_ops.BesselK0e(x=x, name=name)


@public("tf.math.special.bessel_k1")
def bessel_k1(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 1, modified, of the second kind."""
    return tf.raw_ops.BesselK1(x=x, name=name)


@public("tf.math.special.bessel_k1e")
def bessel_k1e(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 1, modified, of the second kind, scaled by an exponential."""
    return tf.raw_ops.BesselK1e(x=x, name=name)


@public("tf.math.special.bessel_y0")
def bessel_y0(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 0, of the second kind."""
    return tf.raw_ops.BesselY0(x=x, name=name)


@public("tf.math.special.bessel_y1")
def bessel_y1(x: Any, name: Any = None) -> Any:
    """The Bessel function of order 1, of the second kind."""
    return tf.raw_ops.BesselY1(x=x, name=name)
