"""Ops with kernels of their author's: written for TVM, and in C.

The bodies stay what the ops mean: gradients, shapes, and calls that no kernel covers come of them.
"""

from pathlib import Path
from typing import Any

import tensorflow as tf
import tvm
from tvm import te

from composite import Composite

SIZE, WIDTH = 8, 2


@Composite(
    "OwnMirrorPad",
    inputs=["x: T"],
    attrs=["width: int >= 0", 'mode: {"REFLECT", "SYMMETRIC"} = "REFLECT"'],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def mirror_pad(x, width, mode):
    """Pads the last two axes of images [batch, rows, columns] with what they mirror."""
    return tf.raw_ops.MirrorPad(
        input=x, paddings=[[0, 0], [width, width], [width, width]], mode=mode
    )


def padded(mode: str) -> Any:
    """The kernel of mirror_pad for float32 images of SIZE x SIZE, as TVM has it."""
    border = 0 if mode == "REFLECT" else 1

    def mirrored(i: Any) -> Any:
        before = tvm.tirx.if_then_else(i < WIDTH, WIDTH - i - border, i - WIDTH)
        last = 2 * SIZE - 2 + border + WIDTH - i
        return tvm.tirx.if_then_else(i >= SIZE + WIDTH, last, before)

    batch, wide = te.var("batch"), SIZE + 2 * WIDTH
    x = te.placeholder((batch, SIZE, SIZE), "float32", name="x")
    y = te.compute((batch, wide, wide), lambda n, i, j: x[n, mirrored(i), mirrored(j)], name="y")
    return te.create_prim_func([x, y])


for _mode in ("REFLECT", "SYMMETRIC"):
    mirror_pad.use_kernel(
        padded(_mode), {"x": ("float32", ("batch", SIZE, SIZE)), "width": WIDTH, "mode": _mode}
    )


@Composite("OwnCountBits", inputs=["x: int32"], outputs=["bits: int32"])
def count_bits(x):
    """How many bits of each number are 1."""
    return tf.cast(tf.raw_ops.PopulationCount(x=x), tf.int32)


def use_c(objects: Path) -> None:
    """Gives count_bits the kernel of count_bits.c, compiled to the file `objects`."""
    count_bits.use_kernel(objects, {"x": ("int32", ("n",))}, function="count_bits")
