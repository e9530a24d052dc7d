"""Layer normalization: Ba et al. 2016, https://arxiv.org/abs/1607.06450, equation 3."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS, widened


@Composite(
    "LayerNorm",
    inputs=["x: T", "gamma: T", "beta: T"],
    attrs=["epsilon: float = 1e-5"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def layer_norm(x, gamma, beta, epsilon):
    """Normalize each row: gamma * (x - mean) / √(variance + epsilon) + beta.

    Args:
        x: [..., n]; mean and variance are those of the last axis.
        gamma: [n].
        beta: [n].
        epsilon: what keeps a constant row from a division by zero.

    Returns:
        [..., n].
    """
    wide = widened(x)
    mean = tf.reduce_mean(wide, -1, keepdims=True)
    variance = tf.math.reduce_variance(wide, -1, keepdims=True)
    normal = (wide - mean) * tf.math.rsqrt(variance + epsilon)
    return tf.cast(normal, x.dtype) * gamma + beta
