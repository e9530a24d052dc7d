"""Quantization in training with a learned step: Esser et al. 2019, https://arxiv.org/abs/1902.08153."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite(
    "FakeQuant",
    inputs=["x: T", "step: T"],
    attrs=["bits: int >= 2 = 8"],
    derived_attrs=FLOATS,
    outputs=["y: T"],
)
def fake_quant(x, step, bits):
    """X as signed integers of so many bits would keep it; the gradient goes straight through.

    Args:
        x: [..., n].
        step: [] or [n], positive: the distance of two values that can be told apart.
        bits: of the integers.

    Returns:
        [..., n]. The gradient is that of a clip in x, and that of equation 3 in step.
    """
    clipped = tf.clip_by_value(x / step, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    rounded = clipped + tf.stop_gradient(tf.round(clipped) - clipped)
    return rounded * step
