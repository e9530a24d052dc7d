"""Group normalization: Wu and He 2018, https://arxiv.org/abs/1803.08494, section 3."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS, widened


@Composite(
    "GroupNorm",
    inputs=["x: T", "gamma: T", "beta: T"],
    attrs=["groups: int >= 1 = 32", "epsilon: float = 1e-5"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def group_norm(x, gamma, beta, groups, epsilon):
    """Normalize groups of channels: gamma * (x - mean) / √(variance + epsilon) + beta.

    Args:
        x: [batch, ..., channels]; mean and variance are those of one group of one image.
        gamma: [channels].
        beta: [channels].
        groups: their number, a divisor of channels.
        epsilon: what keeps a constant group from a division by zero.

    Returns:
        [batch, ..., channels].
    """
    channels = x.shape[-1]
    assert channels % groups == 0, f"{channels} channels are not {groups} groups of one size"
    grouped = tf.reshape(widened(x), [x.shape[0], -1, groups, channels // groups])
    mean = tf.reduce_mean(grouped, [1, 3], keepdims=True)
    variance = tf.math.reduce_variance(grouped, [1, 3], keepdims=True)
    normal = (grouped - mean) * tf.math.rsqrt(variance + epsilon)
    return tf.cast(tf.reshape(normal, tf.shape(x)), x.dtype) * gamma + beta
