"""An op that calls one that is written in C++."""

from composite import Composite
from examples.bazel.gen_bits_ops import count_bits


@Composite("Parity", inputs=["x: int32"], outputs=["y: int32"])
def parity(x):
    """1 where an odd number of bits is set, else 0."""
    return count_bits(x) % 2
