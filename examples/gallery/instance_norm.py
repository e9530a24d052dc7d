"""Instance normalization: Ulyanov et al. 2016, https://arxiv.org/abs/1607.08022, equation 2."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS, widened


@Composite(
    "InstanceNorm",
    inputs=["x: T", "gamma: T", "beta: T"],
    attrs=["epsilon: float = 1e-5"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def instance_norm(x, gamma, beta, epsilon):
    """Normalize each channel of each image: gamma * (x - mean) / √(variance + epsilon) + beta.

    Args:
        x: [batch, ..., channels]; mean and variance are those of the axes in the middle.
        gamma: [channels].
        beta: [channels].
        epsilon: what keeps a constant channel from a division by zero.

    Returns:
        [batch, ..., channels].
    """
    wide = widened(x)
    axes = list(range(1, x.shape.rank - 1))
    mean = tf.reduce_mean(wide, axes, keepdims=True)
    variance = tf.math.reduce_variance(wide, axes, keepdims=True)
    normal = (wide - mean) * tf.math.rsqrt(variance + epsilon)
    return tf.cast(normal, x.dtype) * gamma + beta
