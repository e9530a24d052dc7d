"""An op that calls one of another library."""

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
    """Each entry of x times the sigmoid of it, scaled and shifted."""
    return x * tf.sigmoid(scale_shift(x, scale, shift))


gated_shift.add_signature(
    x=("float32", ("rows", 16)), scale=("float32", (16,)), shift=("float32", (16,))
)
