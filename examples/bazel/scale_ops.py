"""An op that others build on."""

import tensorflow as tf

from composite import Composite


@Composite(
    "ScaleShift",
    inputs=["x: T", "scale: T", "shift: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def scale_shift(x, scale, shift):
    """x * scale + shift; scale and shift are those of a column, or scalars."""
    return x * scale + shift


scale_shift.add_signature(
    x=("float32", ("rows", "columns")), scale=("float32", ("columns",)), shift=("float32", ("columns",))
)
