"""Convolutions over images, dense, in groups, and channel by channel, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import (
    ChannelFilterGradient,
    Convolution,
    FilterGradient,
    MatMul,
)
from composite.compiler.tvm.ir.dims import Shape, ceildiv
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Node, Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.lower.blocks import spread_blocks
from composite.compiler.tvm.lower.joining import padded, spread_out
from composite.compiler.tvm.lower.reduction import ADD, reduce_over
from composite.compiler.tvm.lower.static import known_dims, known_ints
from composite.compiler.tvm.lower.unary import FLOATS
from composite.compiler.tvm.lower.windows import per_window, spatial, window_of
from composite.compiler.tvm.read.node import OpNode


def _lower_conv2d(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    image, kernel = inputs
    rows, columns, depth, count = _filter_sizes(node, image, kernel, (*FLOATS, "int32"))
    channels = image.shape[3]
    if not isinstance(channels, int) or channels % depth or count % (channels // depth):
        raise NotCovered(f"{node.op}: {channels} channels for filters {kernel.shape}")
    return [_convolution(node, image, kernel, (rows, columns))]


def _lower_depthwise(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower filters ``[rows, columns, C, M]``: a convolution in C groups of M filters."""
    image, kernel = inputs
    rows, columns, channels, multiplier = _filter_sizes(node, image, kernel)
    dims.require_equal(image.shape[3], channels, node.op)
    _refuse_uneven(node)
    kernel = graph.reshape(kernel, (rows, columns, 1, channels * multiplier))
    return [_convolution(node, image, kernel, (rows, columns))]


def _refuse_uneven(node: OpNode) -> None:
    rows, columns = spatial(node, "strides")
    if rows != columns or spatial(node, "dilations") != (1, 1):
        raise NotCovered(f"{node.op}: unequal strides, or dilations")  # nor has TF


def _filter_sizes(
    node: OpNode, image: Tensor, kernel: Tensor, dtypes: Sequence[str] = FLOATS
) -> tuple[int, int, int, int]:
    node.require(image.dtype, *dtypes)
    if image.rank != 4 or kernel.rank != 4:
        raise NotCovered(f"{node.op}: ranks {image.rank} and {kernel.rank}")
    sizes = [d for d in kernel.shape if isinstance(d, int) and d > 0]
    if len(sizes) != 4:
        raise NotCovered(f"{node.op}: a filter {kernel.shape}")
    rows, columns, depth, count = sizes
    return rows, columns, depth, count


def _convolution(node: OpNode, image: Tensor, kernel: Tensor, size: tuple[int, int]) -> Tensor:
    window = window_of(node, image.shape, size)
    count = dims.product((image.shape[0], *window.counts))
    result: Node = Convolution(image, kernel, window)
    if size == (1, 1) and window.strides == (1, 1) and _is_whole(image, kernel, window):
        depth = kernel.shape[2]
        rows = graph.reshape(image, (count, depth))
        result = MatMul(rows, graph.reshape(kernel, (depth, kernel.shape[3])))
    return per_window(Tensor((count, kernel.shape[3]), image.dtype, result), image, window)


def _lower_image_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the gradient of the image: a convolution of the gradient, the filter backwards."""
    sizes, kernel, gradient = inputs
    rows, columns, depth, _ = _filter_sizes(node, gradient, kernel)
    shape = known_dims(node, sizes, "the image's shape")
    forward = _forward_window(node, shape, (rows, columns), gradient)
    dims.require_equal(shape[3], depth, f"{node.op}: channels")
    if (rows, columns) == (1, 1) and forward.before == (0, 0):
        return [_of_pixels(node, gradient, kernel, forward, shape)]
    if forward.strides != (1, 1):
        return [_in_blocks(node, gradient, kernel, forward, shape)]
    return [_backwards(node, gradient, kernel, forward, shape)]


def _of_pixels(
    node: OpNode, gradient: Tensor, kernel: Tensor, forward: Window, shape: Shape
) -> Tensor:
    """Return images of that shape, of which windows were single pixels: zeros are between them."""
    product = MatMul(_as_rows(gradient), graph.reshape(kernel, kernel.shape[2:]), transpose_b=True)
    rows = Tensor((dims.product(gradient.shape[:3]), shape[3]), gradient.dtype, product)
    pixels = graph.reshape(rows, (*gradient.shape[:3], shape[3]))
    for axis, stride in enumerate(forward.strides, 1):
        pixels = spread_out(node, pixels, axis, stride)
    behind = [(0, size - have) for size, have in zip(shape, pixels.shape, strict=True)]
    return padded(pixels, behind)


def _backwards(
    node: OpNode, gradient: Tensor, kernel: Tensor, forward: Window, shape: Shape
) -> Tensor:
    """Return images of that shape, a pixel the sum of its products: the filter runs backwards."""
    before = [r - 1 - b for r, b in zip(forward.reach, forward.before, strict=True)]
    if min(before) < 0:
        raise NotCovered(f"{node.op}: padding {forward.before}")
    top, left = before
    window = Window(forward.size, (1, 1), (1, 1), (top, left), (shape[1], shape[2]))
    pixels = Convolution(gradient, kernel, window, transposed=True)
    count = dims.product(shape[:3])
    return graph.reshape(Tensor((count, kernel.shape[2]), gradient.dtype, pixels), shape)


def _in_blocks(
    node: OpNode, gradient: Tensor, kernel: Tensor, forward: Window, shape: Shape
) -> Tensor:
    """Return images of that shape, whose windows were strides apart.

    Where ``p + before`` is ``stride * m + r``, pixel p is the sum over j of gradient ``m - j``
    times the filter at ``r + stride * j``. So a block of stride pixels is made of the same
    gradients: they are the filters of one convolution, which has zeros where the filter ends.
    """
    strides, before = forward.strides, forward.before
    if any(b >= r for b, r in zip(before, forward.size, strict=True)):
        raise NotCovered(f"{node.op}: padding {before}")
    taps = [ceildiv(size, stride) for size, stride in zip(forward.size, strides, strict=True)]
    first = [b // stride for b, stride in zip(before, strides, strict=True)]
    sides = list(zip(shape[1:3], before, strides, first, strict=True))
    counts = [dims.floordiv(size + (b - 1), stride) - (m - 1) for size, b, stride, m in sides]
    window = Window(
        (taps[0], taps[1]),
        (1, 1),
        (1, 1),
        (taps[0] - 1 - first[0], taps[1] - 1 - first[1]),
        (counts[0], counts[1]),
    )
    filters = _filters_of_blocks(kernel, forward, taps)
    rows = dims.product((shape[0], *counts))
    sums = Tensor(
        (rows, filters.shape[2]),
        gradient.dtype,
        Convolution(gradient, filters, window, transposed=True),
    )
    blocks = graph.reshape(sums, (shape[0], *counts, filters.shape[2]))
    pixels = spread_blocks(blocks, strides, shape[3])
    start = [b - stride * m for _, b, stride, m in sides]
    return views.sliced(pixels, [0, *start, 0], shape)


def _filters_of_blocks(kernel: Tensor, forward: Window, taps: Sequence[int]) -> Tensor:
    """Return filters ``[rows, columns, D, F]`` as those of blocks: of each pixel its own D."""
    ends = [
        (0, tap * stride - size)
        for tap, stride, size in zip(taps, forward.strides, forward.size, strict=True)
    ]
    (down, across), (rows, columns), (depth, count) = forward.strides, taps, kernel.shape[2:]
    whole = padded(kernel, [*ends, (0, 0), (0, 0)])
    apart = graph.reshape(whole, (rows, down, columns, across, depth, count))
    blocks = graph.transpose(apart, (0, 2, 1, 3, 4, 5))
    return graph.reshape(blocks, (rows, columns, down * across * depth, count))


def _lower_depthwise_image_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the gradient of the image, with zeros between gradients that are strides apart."""
    sizes, kernel, gradient = inputs
    rows, columns, channels, multiplier = _filter_sizes(node, gradient, kernel)
    _refuse_uneven(node)
    shape = known_dims(node, sizes, "the image's shape")
    forward = _forward_window(node, shape, (rows, columns), gradient)
    dims.require_equal(shape[3], channels, f"{node.op}: channels")
    dims.require_equal(gradient.shape[3], channels * multiplier, f"{node.op}: gradient")
    for axis, stride in enumerate(forward.strides, 1):
        gradient = spread_out(node, gradient, axis, stride)
    return [_backwards(node, gradient, kernel, forward, shape)]


def _lower_filter_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    image, sizes, gradient = inputs
    node.require(image.dtype, *FLOATS)
    rows, columns, depth, count = known_ints(node, sizes, "the filter's shape")
    window = _forward_window(node, image.shape, (rows, columns), gradient)
    dims.require_equal(image.shape[3], depth, f"{node.op}: channels")
    dims.require_equal(gradient.shape[3], count, f"{node.op}: filters")
    given = _as_rows(gradient)
    result: Node = FilterGradient(image, given, window)
    if (rows, columns) == (1, 1) and image.shape[1:3] == window.counts:
        result = MatMul(_as_rows(image), given, transpose_a=True)
    total = Tensor((rows * columns * depth, count), image.dtype, result)
    return [graph.reshape(total, (rows, columns, depth, count))]


def _lower_depthwise_filter_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the gradient of the filters: that of each image, and the sum over images.

    16-bit floats are added up in float32.
    """
    image, sizes, gradient = inputs
    node.require(image.dtype, *FLOATS)
    _refuse_uneven(node)
    rows, columns, channels, multiplier = known_ints(node, sizes, "the filter's shape")
    if min(rows, columns, channels, multiplier) < 1:
        raise NotCovered(f"{node.op}: a filter {(rows, columns, channels, multiplier)}")
    window = _forward_window(node, image.shape, (rows, columns), gradient)
    dims.require_equal(image.shape[3], channels, f"{node.op}: channels")
    dims.require_equal(gradient.shape[3], channels * multiplier, f"{node.op}: gradient")
    each: Node = ChannelFilterGradient(image, gradient, window)
    size = rows * columns * channels * multiplier
    parts = Tensor((image.shape[0], size), compute_dtype(image.dtype), each)
    total = reduce_over(ADD, parts, (0,), keep=False)
    if total.dtype != image.dtype:
        total = pointwise("Cast", lambda _, x: x, (total,), image.dtype)
    return [graph.reshape(total, (rows, columns, channels, multiplier))]


def _forward_window(node: OpNode, image: Shape, size: tuple[int, int], gradient: Tensor) -> Window:
    """Return the windows of the convolution that this is a gradient of."""
    window = window_of(node, image, size)
    if window.dilations != (1, 1):
        raise NotCovered(f"{node.op}: dilations")  # nor has TF
    for have, want in zip(gradient.shape[:3], (image[0], *window.counts), strict=True):
        dims.require_equal(have, want, f"{node.op}: gradient")
    return window


def _as_rows(tensor: Tensor) -> Tensor:
    return graph.reshape(tensor, (dims.product(tensor.shape[:3]), tensor.shape[3]))


def _is_whole(image: Tensor, kernel: Tensor, window: Window) -> bool:
    """Return whether each pixel is a window, and there is one group."""
    return image.shape[1:3] == window.counts and image.shape[3] == kernel.shape[2]


LOWERINGS = {
    "Conv2D": _lower_conv2d,
    "DepthwiseConv2dNative": _lower_depthwise,
    "Conv2DBackpropInput": _lower_image_gradient,
    "Conv2DBackpropFilter": _lower_filter_gradient,
    "DepthwiseConv2dNativeBackpropInput": _lower_depthwise_image_gradient,
    "DepthwiseConv2dNativeBackpropFilter": _lower_depthwise_filter_gradient,
}
