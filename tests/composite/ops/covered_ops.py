"""Ops whose bodies reach, or seem to reach, ops that are lowered under conditions."""

import tensorflow as tf

from composite import Composite

_T = ["T: {float, double, int32, complex64}"]


@Composite("SumOfMagnitudes", inputs=["x: T", "y: T"], derived_attrs=_T, outputs=["o: U"],
           attrs=["U: {float, double, int32} = DT_FLOAT"])  # fmt: skip
def sum_of_magnitudes(x, y, U):
    """|x| + |y|, for which tf.abs has ComplexAbs in branches that no real dtype takes."""
    return tf.cast(tf.abs(x), U) + tf.cast(tf.abs(y), U)


@Composite("TwiceTheMagnitudes", inputs=["x: float"], outputs=["o: float"])
def twice_the_magnitudes(x):
    """A call of a composite with such branches."""
    return sum_of_magnitudes(x, x, U=tf.float32)


@Composite("FactorialOrMagnitude", inputs=["x: float"], attrs=["k: int"], outputs=["o: float"])
def factorial_or_magnitude(x, k):
    """Logarithms of factorials, by an op without kernels, or magnitudes."""
    if k > 0:
        return tf.math.lgamma(x) * k
    return tf.abs(x)


@Composite("IsOneOf", inputs=["x: T", "y: T"], derived_attrs=_T, outputs=["o: bool"])
def is_one_of(x, y):
    """Where x is y or 0, and is not 7."""
    return tf.logical_and(tf.logical_or(x == y, x == 0), x != 7)


@Composite("Quotients", inputs=["x: T", "y: T"], derived_attrs=["T: {int32, int64}"],
           outputs=["q: T", "r: T"])  # fmt: skip
def quotients(x, y):
    """The quotient and the remainder."""
    return x // y, x % y


@Composite("Attention", inputs=["q: T", "k: T", "v: T"], derived_attrs=["T: {float, double}"],
           outputs=["o: T"])  # fmt: skip
def attention(q, k, v):
    """Softmax attention of [batch, time, heads, depth]."""
    scores = tf.einsum("bthd,bshd->bhts", q, k) * 0.5
    return tf.einsum("bhts,bshd->bthd", tf.nn.softmax(scores), v)
