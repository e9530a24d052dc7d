"""Rotary position embedding: Su et al. 2021, https://arxiv.org/abs/2104.09864, equation 34."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS, widened


@Composite(
    "RotaryEmbedding",
    inputs=["x: T", "positions: int32"],
    attrs=["base: float = 10000.0"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def rotary_embedding(x, positions, base):
    """Rotate the pairs (x[i], x[i + width / 2]) of a head by position / base^(2i / width).

    Args:
        x: [batch, length, heads, width], queries or keys; width is even.
        positions: [length], those of the tokens.
        base: of the wave lengths.

    Returns:
        [batch, length, heads, width].
    """
    wide = widened(x)
    half = x.shape[-1] // 2
    frequencies = base ** (-tf.range(half, dtype=wide.dtype) / half)
    angles = tf.cast(positions, wide.dtype)[:, None, None] * frequencies
    sin, cos = tf.sin(angles), tf.cos(angles)
    left, right = tf.split(wide, 2, axis=-1)
    rotated = tf.concat([left * cos - right * sin, right * cos + left * sin], -1)
    return tf.cast(rotated, x.dtype)
