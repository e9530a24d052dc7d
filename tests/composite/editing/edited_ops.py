"""Ops that the tests put into graphs."""

from __future__ import annotations

import tensorflow as tf

from composite import Composite


@Composite(
    "EditedTanh",
    inputs=["x: T"],
    attrs=["scale: float = 1.0"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def scaled_tanh(x, scale):
    """The scaled tanh."""
    return tf.tanh(x) * scale
