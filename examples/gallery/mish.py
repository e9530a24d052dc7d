"""Mish: Misra 2019, https://arxiv.org/abs/1908.08681, equation 1."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite("Mish", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def mish(x):
    """A smooth activation: x * tanh(log(1 + exp(x))).

    Args:
        x: [...].

    Returns:
        [...].
    """
    return x * tf.tanh(tf.nn.softplus(x))
