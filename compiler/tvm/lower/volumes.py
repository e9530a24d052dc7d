"""Convolutions and pools over volumes ``[N, D, H, W, C]``, and their gradients.

The slices that a window covers, their channels side by side, are one image: a convolution of these
makes a slice of the result. A pool is one over each slice, and then one over slices.
"""

from __future__ import annotations

from collections.abc import Callable

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import Combine, PoolGradient
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.lower.convolution import (
    are_apart,
    convolution,
    filter_gradient,
    image_gradient,
    of_finite,
)
from composite.compiler.tvm.lower.joining import padded, spread_out
from composite.compiler.tvm.lower.near_largest import near_largest
from composite.compiler.tvm.lower.pooling import largest, pool, spread_gradient
from composite.compiler.tvm.lower.reduction import ADD
from composite.compiler.tvm.lower.static import known_dims, known_ints
from composite.compiler.tvm.lower.unary import FLOATS
from composite.compiler.tvm.lower.windows import (
    Side,
    require_gradient,
    sides_of,
    spatial,
    window_over,
)
from composite.compiler.tvm.nodes.node import OpNode


def _lower_conv3d(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    volume, kernel = inputs
    node.require(volume.dtype, *FLOATS)
    depth, window = _windows(node, volume.shape, kernel.shape)
    images = _side_by_side(node, volume, depth)
    result = convolution(images, _of_images(kernel), window)
    return [graph.reshape(result, (volume.shape[0], depth.count, *result.shape[1:]))]


def _lower_volume_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the gradient of the volume: a slice is made of those whose windows cover it."""
    sizes, kernel, gradient = inputs
    node.require(gradient.dtype, *FLOATS)
    shape = known_dims(node, sizes, "the volume's shape")
    depth, window = _windows(node, shape, kernel.shape)
    require_gradient(node, gradient.shape, (shape[0], depth.count, *window.counts, kernel.shape[4]))
    if depth.before >= depth.reach:
        raise NotCovered(f"{node.op}: padding {depth.before}")
    apart = spread_out(node, gradient, 1, depth.stride)
    before = depth.reach - 1 - depth.before
    slices = Side(depth.size, 1, depth.dilation, before, shape[1])
    images = _side_by_side(node, apart, slices, backwards=True)
    of_slices = (dims.product(shape[:2]), *shape[2:])
    made = image_gradient(node, images, _of_gradients(kernel), window, of_slices)
    result = graph.reshape(made, shape)
    has_no_zeros = _is_each(depth) and are_apart(window)
    return [result if has_no_zeros else of_finite(node, result, kernel)]


def _lower_filter_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    volume, sizes, gradient = inputs
    node.require(volume.dtype, *FLOATS)
    shape = known_ints(node, sizes, "filter shape")
    depth, window = _windows(node, volume.shape, shape)
    wanted = (volume.shape[0], depth.count, *window.counts, shape[4])
    require_gradient(node, gradient.shape, wanted)
    images = _side_by_side(node, volume, depth)
    result = filter_gradient(images, _slices(gradient), window)
    slices, rows, columns, channels, count = shape
    apart = graph.reshape(result, (rows, columns, slices, channels, count))
    return [graph.transpose(apart, (2, 0, 1, 3, 4))]


def _windows(node: OpNode, volume: Shape, kernel: Shape) -> tuple[Side, Window]:
    """Return the windows along D, and those over its slices, of filters ``[D, H, W, C, F]``."""
    sizes = [d for d in kernel if isinstance(d, int) and d > 0]
    if len(sizes) != 5:
        raise NotCovered(f"{node.op}: a filter {kernel}")
    depth, rows, columns = sides_of(node, volume, sizes[:3])
    dims.require_equal(volume[4], sizes[3], f"{node.op}: channels")
    return depth, window_over(rows, columns)


def _side_by_side(node: OpNode, volume: Tensor, side: Side, *, backwards: bool = False) -> Tensor:
    """Return images of which each has the slices that a window covers, their channels in order.

    Slices outside are zero. ``backwards``, the channels of the last slice come first.
    """
    batch, have, height, width, channels = volume.shape
    behind = (side.count - 1) * side.stride + side.reach - side.before - have
    if isinstance(behind, int):
        behind = max(0, behind)
    elif side.before == 0 and side.reach <= side.stride:
        behind = 0
    node.at_least(behind, 0, f"a padding of {behind}")
    around: list[tuple[Dim, Dim]] = [(0, 0)] * 5
    around[1] = (side.before, behind)
    whole = padded(volume, around)
    parts = []
    for tap in range(side.size):
        shape = (batch, side.count, height, width, channels)
        start = (0, tap * side.dilation, 0, 0, 0)
        part = views.sliced(whole, start, shape, (1, side.stride, 1, 1, 1))
        parts.append(graph.reshape(part, (*shape[:4], 1, channels)))
    joined = views.concat(parts[::-1] if backwards else parts, 4, node.op)
    images = dims.product((batch, side.count))
    return graph.reshape(joined, (images, height, width, side.size * channels))


def _of_images(kernel: Tensor) -> Tensor:
    """Return filters ``[D, H, W, C, F]`` as ``[H, W, D * C, F]``."""
    slices, rows, columns, channels, count = kernel.shape
    last = graph.transpose(kernel, (1, 2, 0, 3, 4))
    return graph.reshape(last, (rows, columns, slices * channels, count))


def _of_gradients(kernel: Tensor) -> Tensor:
    """Return filters ``[D, H, W, C, F]`` as ``[H, W, C, D * F]``."""
    slices, rows, columns, channels, count = kernel.shape
    last = graph.transpose(kernel, (1, 2, 3, 0, 4))
    return graph.reshape(last, (rows, columns, channels, slices * count))


def _slices(volume: Tensor) -> Tensor:
    """Return the slices of volumes as images."""
    return graph.reshape(volume, (dims.product(volume.shape[:2]), *volume.shape[2:]))


def _lower_max_pool(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (volume,) = inputs
    node.require(volume.dtype, *FLOATS)
    return [_pool(node, volume, largest(volume.dtype), mean=False)]


def _lower_avg_pool(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower means: as many elements of a slice count in each, that of its means is the mean."""
    (volume,) = inputs
    node.require(volume.dtype, *FLOATS)
    return [_pool(node, volume, ADD, mean=True)]


def _pool(node: OpNode, volume: Tensor, combine: Combine, *, mean: bool) -> Tensor:
    depth, window = _pooled(node, volume.shape)
    result = of_slices = pool(_slices(volume), window, combine, mean=mean)
    if not _is_each(depth):
        lines = _lines(of_slices, volume.shape)
        result = pool(lines, _along(depth, lines.shape), combine, mean=mean)
    return graph.reshape(result, (volume.shape[0], depth.count, *of_slices.shape[1:]))


def _lower_max_pool_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    volume, largest_ones, gradient = inputs
    node.require(volume.dtype, *FLOATS)
    result = near_largest(node, volume, largest_ones, gradient)
    # Else the largest of each window is found again.
    return [_gradient(node, volume.shape, gradient, volume) if result is None else result]


def _lower_avg_pool_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    sizes, gradient = inputs
    node.require(gradient.dtype, *FLOATS)
    return [_gradient(node, known_dims(node, sizes, "the volume's shape"), gradient, None)]


def _gradient(node: OpNode, shape: Shape, gradient: Tensor, volume: Tensor | None) -> Tensor:
    """Return what windows give to slices, which give it to their elements.

    Elements that are equally large are given the same: unlike of images, not the first one alone.
    """
    depth, window = _pooled(node, shape)
    require_gradient(node, gradient.shape, (shape[0], depth.count, *window.counts, shape[4]))
    slices = _slices(volume) if volume is not None else None
    given = gradient
    if not _is_each(depth):
        lines: Shape = (*shape[:2], dims.product(window.counts), shape[4])
        given = graph.reshape(gradient, (shape[0], depth.count, *lines[2:]))
        of_slices = None
        if slices is not None:
            largest_ones = pool(slices, window, largest(slices.dtype), mean=False)
            of_slices = _lines(largest_ones, shape)
        along, sizes = _along(depth, lines), (lines[1], lines[2])
        spread = PoolGradient(given, of_slices, along, sizes, to_all=True)
        given = spread_gradient(node, spread, lines)
    images = (dims.product(shape[:2]), *shape[2:])
    given = graph.reshape(given, (images[0], *window.counts, shape[4]))
    spread = PoolGradient(given, slices, window, (shape[2], shape[3]), to_all=True)
    return graph.reshape(spread_gradient(node, spread, images), shape)


def _pooled(node: OpNode, shape: Shape) -> tuple[Side, Window]:
    """Return the windows of a pool along D, and those over its slices."""
    depth, rows, columns = sides_of(node, shape, spatial(node, "ksize", 3))
    return depth, window_over(rows, columns)


def _is_each(depth: Side) -> bool:
    """Return whether each slice is a window, and each window a slice."""
    return depth.size == depth.stride == 1


def _lines(of_slices: Tensor, volume: Shape) -> Tensor:
    """Return slices of volumes, whose elements lie in one line, as images ``[N, D, H * W, C]``."""
    _, rows, columns, channels = of_slices.shape
    return graph.reshape(of_slices, (*volume[:2], dims.product((rows, columns)), channels))


def _along(depth: Side, lines: Shape) -> Window:
    """Return windows over D of images ``[N, D, H * W, C]``."""
    return window_over(depth, Side(1, 1, 1, 0, lines[2]))


LOWERINGS: dict[str, Callable[[OpNode, list[Tensor]], list[Tensor]]] = {
    "Conv3D": _lower_conv3d,
    "Conv3DBackpropInputV2": _lower_volume_gradient,
    "Conv3DBackpropFilterV2": _lower_filter_gradient,
    "MaxPool3D": _lower_max_pool,
    "AvgPool3D": _lower_avg_pool,
    "MaxPool3DGrad": _lower_max_pool_gradient,
    "AvgPool3DGrad": _lower_avg_pool_gradient,
}
