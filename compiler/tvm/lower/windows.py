"""What ops over images have in common: their windows, from the attributes of a node.

Images are ``[N, H, W, C]``. Not an op family: it has no lowerings.
"""

from __future__ import annotations

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.read.node import OpNode


def window_of(node: OpNode, image: Shape, size: tuple[int, int]) -> Window:
    """Return the windows on images of a shape, by the attributes strides, dilations, padding."""
    if len(image) != 4:
        raise NotCovered(f"{node.op}: an image of rank {len(image)}")
    if node.text("data_format", "NHWC") != "NHWC":
        raise NotCovered(f"{node.op}: data_format {node.text('data_format', '')}")
    strides = spatial(node, "strides")
    dilations = spatial(node, "dilations")
    explicit = node.numbers("explicit_paddings")
    padding = node.text("padding", "VALID")
    sides = []
    for i in range(2):
        reach = (size[i] - 1) * dilations[i] + 1
        around = (explicit[2 + 2 * i], explicit[3 + 2 * i]) if padding == "EXPLICIT" else (0, 0)
        if padding == "SAME":
            sides.append(_same(node, image[1 + i], strides[i], reach))
        else:
            sides.append(_stated(node, image[1 + i], strides[i], reach, around))
    (top, rows), (left, columns) = sides
    return Window(size, strides, dilations, (top, left), (rows, columns))


def spatial(node: OpNode, key: str) -> tuple[int, int]:
    """Return the spatial two of an attribute with a number an axis, 1 where there is none."""
    batch, rows, columns, channels = node.numbers(key) or (1, 1, 1, 1)
    if batch != 1 or channels != 1:
        raise NotCovered(f"{node.op}: {key} along batch or channels")
    return rows, columns


def _same(node: OpNode, size: Dim, stride: int, reach: int) -> tuple[int, Dim]:
    """Return the padding in front and the number of windows of padding SAME."""
    count = dims.floordiv(size + (stride - 1), stride)
    rests = {size % stride} if isinstance(size, int) else set(range(stride))
    # The padding depends on the size by what the last step leaves over.
    before = {max(0, reach - (rest or stride)) // 2 for rest in rests}
    if len(before) > 1:
        raise NotCovered(f"{node.op}: padding SAME with stride {stride} of unknown size")
    return before.pop(), count


def _stated(
    node: OpNode, size: Dim, stride: int, reach: int, around: tuple[int, int]
) -> tuple[int, Dim]:
    """Return the same of a padding that is stated."""
    room = size + (sum(around) - reach + stride)
    if not isinstance(room, int):
        if sum(around) + 1 < reach:
            raise NotCovered(f"{node.op}: whether a window fits into an unknown size")
    elif room < 0:
        raise NotCovered(f"{node.op}: a window of {reach} in {size}")
    return around[0], dims.floordiv(room, stride)


def per_window(tensor: Tensor, image: Tensor, window: Window) -> Tensor:
    """Return ``[N * windows, F]`` as ``[N, rows, columns, F]``."""
    return graph.reshape(tensor, (image.shape[0], *window.counts, tensor.shape[-1]))
