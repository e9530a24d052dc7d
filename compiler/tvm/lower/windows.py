"""What ops over images and volumes have in common: their windows, from the attributes of a node.

Images are ``[N, H, W, C]``, volumes ``[N, D, H, W, C]``. Not an op family: it has no lowerings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.window import Window, reach
from composite.compiler.tvm.nodes.node import OpNode

_LAYOUTS = {2: "NHWC", 3: "NDHWC"}


@dataclass(frozen=True)
class Side:
    """Windows along one dimension, as in :class:`..ir.window.Window`."""

    size: int
    stride: int
    dilation: int
    before: int
    count: Dim

    @property
    def reach(self) -> int:
        """Elements from the first to the last that a window covers."""
        return reach(self.size, self.dilation)


def window_of(node: OpNode, image: Shape, size: Sequence[int]) -> Window:
    """Return the windows on images of a shape, by the attributes strides, dilations, padding."""
    rows, columns = sides_of(node, image, size)
    return window_over(rows, columns)


def window_over(rows: Side, columns: Side) -> Window:
    """Return the windows along rows and columns."""
    return Window(
        (rows.size, columns.size),
        (rows.stride, columns.stride),
        (rows.dilation, columns.dilation),
        (rows.before, columns.before),
        (rows.count, columns.count),
    )


def sides_of(node: OpNode, shape: Shape, size: Sequence[int]) -> list[Side]:
    """Return the windows along each dimension of images, or of volumes."""
    layout = _LAYOUTS[len(size)]
    if len(shape) != len(layout):
        raise NotCovered(f"{node.op}: an image of rank {len(shape)}")
    if node.text("data_format", layout) != layout:
        raise NotCovered(f"{node.op}: data_format {node.text('data_format', '')}")
    strides = spatial(node, "strides", len(size))
    dilations = spatial(node, "dilations", len(size))
    explicit = node.numbers("explicit_paddings")
    padding = node.text("padding", "VALID")
    sides = []
    for i, taps in enumerate(size):
        covered = reach(taps, dilations[i])
        around = (explicit[2 + 2 * i], explicit[3 + 2 * i]) if padding == "EXPLICIT" else (0, 0)
        if padding == "SAME":
            before, count = _same(node, shape[1 + i], strides[i], covered)
        else:
            before, count = _stated(node, shape[1 + i], strides[i], covered, around)
        sides.append(Side(taps, strides[i], dilations[i], before, count))
    return sides


def spatial(node: OpNode, key: str, count: int) -> tuple[int, ...]:
    """Return the spatial ones of an attribute with a number an axis, 1 where there is none."""
    batch, *numbers, channels = node.numbers(key) or [1] * (count + 2)
    if batch != 1 or channels != 1 or len(numbers) != count:
        raise NotCovered(f"{node.op}: {key} along batch or channels")
    return tuple(numbers)


def _same(node: OpNode, size: Dim, stride: int, covered: int) -> tuple[int, Dim]:
    """Return the padding in front and the number of windows of padding SAME."""
    count = dims.floordiv(size + (stride - 1), stride)
    rests = {size % stride} if isinstance(size, int) else set(range(stride))
    # The padding depends on the size by what the last step leaves over.
    before = {max(0, covered - (rest or stride)) // 2 for rest in rests}
    if len(before) > 1:
        raise NotCovered(f"{node.op}: padding SAME with stride {stride} of unknown size")
    return before.pop(), count


def _stated(
    node: OpNode, size: Dim, stride: int, covered: int, around: tuple[int, int]
) -> tuple[int, Dim]:
    """Return the same of a padding that is stated."""
    room = size + (sum(around) - covered + stride)
    if not isinstance(room, int):
        if sum(around) + 1 < covered:
            raise NotCovered(f"{node.op}: whether a window fits into an unknown size")
    elif room < 0:
        raise NotCovered(f"{node.op}: a window of {covered} in {size}")
    return around[0], dims.floordiv(room, stride)


def require_gradient(node: OpNode, given: Shape, wanted: Shape) -> None:
    """Refuse a gradient that is not known to be of the shape of what it is a gradient of."""
    if len(given) != len(wanted):
        raise NotCovered(f"{node.op}: a gradient of rank {len(given)}")
    for have, want in zip(given, wanted, strict=True):
        dims.require_equal(have, want, f"{node.op}: gradient")


def per_window(tensor: Tensor, image: Tensor, window: Window) -> Tensor:
    """Return ``[N * windows, F]`` as ``[N, rows, columns, F]``."""
    return graph.reshape(tensor, (image.shape[0], *window.counts, tensor.shape[-1]))
