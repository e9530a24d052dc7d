"""Normalization by the root mean square: Zhang and Sennrich 2019, https://arxiv.org/abs/1910.07467."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS, widened


@Composite(
    "RmsNorm",
    inputs=["x: T", "gamma: T"],
    attrs=["epsilon: float = 1e-6"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def rms_norm(x, gamma, epsilon):
    """Scale each row to a root mean square of one: gamma * x / √(mean(x²) + epsilon).

    Args:
        x: [..., n].
        gamma: [n].
        epsilon: what keeps a row of zeros from a division by zero.

    Returns:
        [..., n].
    """
    wide = widened(x)
    mean_square = tf.reduce_mean(tf.square(wide), -1, keepdims=True)
    return tf.cast(wide * tf.math.rsqrt(mean_square + epsilon), x.dtype) * gamma
