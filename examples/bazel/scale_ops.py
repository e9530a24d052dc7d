"""An op that another library builds on."""

from composite import Composite


@Composite(
    "ScaleShift",
    inputs=["x: T", "scale: T", "shift: T"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def scale_shift(x, scale, shift):
    """Each column of x times its scale, plus its shift."""
    return x * scale + shift


scale_shift.add_signature(
    x=("float32", ("rows", 16)), scale=("float32", (16,)), shift=("float32", (16,))
)
