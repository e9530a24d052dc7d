"""Ops for the tests of composite.diverge: each has a line at which two ways to run it part."""

import tensorflow as tf

from composite import Composite


@Composite("DivergingVariance", inputs=["x: T"], derived_attrs=["T: {float, double}"],
           outputs=["y: T"])  # fmt: skip
def variance(x):
    """The variance by the formula that cancels."""
    mean = tf.reduce_mean(x, axis=-1)
    squares = tf.reduce_mean(x * x, axis=-1)
    spread = squares - mean * mean
    return tf.sqrt(spread)


@Composite("DivergingSmooth", inputs=["x: T", "steps: int32"],
           derived_attrs=["T: {float, double, half, bfloat16}"], outputs=["y: T"])  # fmt: skip
def smooth(x, steps):
    """A loop that a tensor ends, of which nothing cancels."""
    y = tf.tanh(x)
    i = 0
    while i < steps:
        y = y * 0.5 + tf.exp(-y * y)
        i += 1
    return y


@Composite("DivergingChain", inputs=["x: float"], outputs=["y: float"])
def chain(x):
    """Several lines in one kernel."""
    a = tf.exp(x)
    b = a + 1.0
    c = tf.tanh(b)
    return c * x


@Composite("DivergingUncovered", inputs=["x: float"], outputs=["y: float"])
def uncovered(x):
    """Has an op without a kernel."""
    grown = tf.math.lgamma(x)
    return grown * 2.0


@Composite("DivergingSteep", inputs=["x: float"], outputs=["y: float"])
def steep(x):
    """Its gradient loses what the forward does not."""
    shifted = x * x + 1e-12
    return tf.sqrt(shifted) - x
