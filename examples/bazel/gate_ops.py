"""Ops that call one of another library, and one that is registered in C++."""

import tensorflow as tf

from composite import Composite
from examples.bazel.scale_ops import scale_shift


@Composite(
    "GatedShift",
    inputs=["x: T", "scale: T", "shift: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def gated_shift(x, scale, shift):
    """x times the sigmoid of its columns, scaled and shifted."""
    return x * tf.sigmoid(scale_shift(x, scale, shift))


gated_shift.add_signature(
    x=("float32", ("rows", "columns")), scale=("float32", ("columns",)), shift=("float32", ("columns",))
)
