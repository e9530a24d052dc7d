"""An op whose expansion has a loop, for tests."""

import tensorflow as tf

from composite import Composite


@Composite(
    "TestScan",
    inputs=["x: T", "h: T", "w: T"],
    derived_attrs=["T: {float}"],
    outputs=["last: T"],
)
def scan(x, h, w):
    """What is left of `h` [batch, units] after the steps of `x` [batch, steps, units]."""
    for t in range(tf.shape(x)[1]):
        h = tf.tanh(x[:, t] + h @ w)
    return h
