"""Convolutions over images, dense, in groups, and channel by channel, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import (
    ChannelFilterGradient,
    Convolution,
    FilterGradient,
    MatMul,
)
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Node, Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.lower.blocks import spread_blocks
from composite.compiler.tvm.lower.joining import padded, spread_out
from composite.compiler.tvm.lower.reduction import ADD, ANY, reduce_over
from composite.compiler.tvm.lower.static import known_dims, known_ints
from composite.compiler.tvm.lower.unary import FLOATS
from composite.compiler.tvm.lower.windows import (
    per_window,
    require_gradient,
    spatial,
    window_of,
)
from composite.compiler.tvm.math.numeric import convert, is_nan, sub
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_MOST_PLACES = 4
"""Convolutions that the gradient of one may be: each is code of its own."""


def _lower_conv2d(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    image, kernel = inputs
    rows, columns, depth, count = _filter_sizes(node, image, kernel, (*FLOATS, "int32"))
    channels = image.shape[3]
    if not isinstance(channels, int) or channels % depth or count % (channels // depth):
        raise NotCovered(f"{node.op}: {channels} channels for filters {kernel.shape}")
    return [convolution(image, kernel, window_of(node, image.shape, (rows, columns)))]


def _lower_depthwise(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower filters ``[rows, columns, C, M]``: a convolution in C groups of M filters."""
    image, kernel = inputs
    rows, columns, channels, multiplier = _filter_sizes(node, image, kernel)
    dims.require_equal(image.shape[3], channels, node.op)
    _refuse_uneven(node)
    kernel = graph.reshape(kernel, (rows, columns, 1, channels * multiplier))
    return [convolution(image, kernel, window_of(node, image.shape, (rows, columns)))]


def _refuse_uneven(node: OpNode) -> None:
    rows, columns = spatial(node, "strides", 2)
    if rows != columns or spatial(node, "dilations", 2) != (1, 1):
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


def convolution(image: Tensor, kernel: Tensor, window: Window) -> Tensor:
    """Return the windows of images times filters ``[rows, columns, D, F]``."""
    count = dims.product((image.shape[0], *window.counts))
    result: Node = Convolution(image, kernel, window)
    if window.size == (1, 1) and window.strides == (1, 1) and _is_whole(image, kernel, window):
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
    pixels = image_gradient(node, gradient, kernel, forward, shape)
    return [pixels if are_apart(forward) else of_finite(node, pixels, kernel)]


def image_gradient(
    node: OpNode, gradient: Tensor, kernel: Tensor, forward: Window, shape: Shape
) -> Tensor:
    """Return the gradient of images of that shape, by windows of filters that are finite."""
    if forward.size == (1, 1) and forward.before == (0, 0):
        return _of_pixels(node, gradient, kernel, forward, shape)
    if forward.strides != (1, 1) and is_dense(forward):
        return _in_blocks(node, gradient, kernel, forward, shape)
    return _backwards(node, gradient, kernel, forward, shape)


def is_dense(forward: Window) -> bool:
    """Return whether a window covers each pixel from its first to its last."""
    return forward.reach == forward.size


def are_apart(forward: Window) -> bool:
    """Return whether windows are dense and have no pixel in common."""
    sides = zip(forward.size, forward.strides, strict=True)
    return is_dense(forward) and all(size <= stride for size, stride in sides)


def of_finite(node: OpNode, pixels: Tensor, kernel: Tensor) -> Tensor:
    """Return the pixels; the kernel fails if an element of the filters is no finite number.

    TensorFlow's sum for a pixel at the border has no product of what is outside. A kernel's has
    products with zero there, of an infinity NaN: the expansion then answers.
    """
    finite = _all_finite(kernel)
    return pointwise(node.op, lambda _, y, _zero: y, (pixels, finite), pixels.dtype)


def _all_finite(kernel: Tensor) -> Tensor:
    """Return 0; the kernel fails if an element is no finite number."""

    def body(block: Block, x: Expr) -> Expr:
        return convert(is_nan(sub(block, x, x)), "int32")

    odd = pointwise("IsFinite", body, (kernel,), "int32", cost=2)
    last = odd.rank - 1
    of_rows = reduce_over(ANY, odd, (last,), keep=False)
    return views.checked(reduce_over(ANY, of_rows, tuple(range(last)), keep=False), 1)


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
    """Return images of that shape, a pixel the sum of its products: the filter runs backwards.

    There are zeros between gradients whose windows are strides apart.
    """
    _refuse_wide(node, forward)
    for axis, stride in enumerate(forward.strides, 1):
        gradient = spread_out(node, gradient, axis, stride)
    rows, columns = (r - 1 - b for r, b in zip(forward.reach, forward.before, strict=True))
    counts = (shape[1], shape[2])
    window = Window(forward.size, (1, 1), forward.dilations, (rows, columns), counts)
    return _of_windows(gradient, kernel, window)


def _refuse_wide(node: OpNode, forward: Window) -> None:
    """Refuse padding in front in which a whole window lies."""
    if any(b >= reach for reach, b in zip(forward.reach, forward.before, strict=True)):
        raise NotCovered(f"{node.op}: padding {forward.before}")


def _in_blocks(
    node: OpNode, gradient: Tensor, kernel: Tensor, forward: Window, shape: Shape
) -> Tensor:
    """Return images of that shape, whose windows were strides apart.

    Where ``p + before`` is ``stride * m + r``, pixel p is the sum over j of gradient ``m - j``
    times the filter at ``r + stride * j``: a convolution for each place r of a block.
    """
    _refuse_wide(node, forward)
    strides = forward.strides
    sides = list(zip(forward.size, strides, forward.before, shape[1:3], strict=True))
    first = [b // stride for _, stride, b, _ in sides]
    counts = tuple(
        dims.floordiv(size + (b - 1), stride) - (b // stride - 1) for _, stride, b, size in sides
    )
    if all(size % stride == 0 for size, stride, _, _ in sides):  # one convolution for all places
        filters = _filters_of_blocks(kernel, forward)
        pixels = spread_blocks(_summed(node, gradient, filters, first, counts), strides, shape[3])
    elif strides[0] * strides[1] <= _MOST_PLACES and all(
        size // stride > m for (size, stride, _, _), m in zip(sides, first, strict=True)
    ):
        parts = [
            [
                _summed(node, gradient, _taps_at(kernel, (row, column), strides), first, counts)
                for column in range(strides[1])
            ]
            for row in range(strides[0])
        ]
        pixels = _interleaved(parts)
    else:
        return _with_whole_blocks(node, gradient, kernel, forward, shape)
    start = [b - stride * (b // stride) for _, stride, b, _ in sides]
    return views.sliced(pixels, [0, *start, 0], shape)


def _with_whole_blocks(
    node: OpNode, gradient: Tensor, kernel: Tensor, forward: Window, shape: Shape
) -> Tensor:
    """Return the same for filters with zeros up to a multiple of the strides.

    The kernel fails if an element of the gradient is no finite number: its product with such a zero
    would be NaN.
    """
    strides = forward.strides
    missing = [-size % stride for size, stride in zip(forward.size, strides, strict=True)]
    wide = padded(kernel, [*((0, count) for count in missing), (0, 0), (0, 0)])
    rows, columns = (size + more for size, more in zip(forward.size, missing, strict=True))
    pixels = _in_blocks(node, gradient, wide, replace(forward, size=(rows, columns)), shape)
    return of_finite(node, pixels, gradient)


def _summed(
    node: OpNode, gradient: Tensor, filters: Tensor, first: Sequence[int], counts: Shape
) -> Tensor:
    """Return the sums of gradients times taps, the first of blocks ``first`` of an image."""
    rows, columns, *_ = _filter_sizes(node, gradient, filters)
    before = (rows - 1 - first[0], columns - 1 - first[1])
    window = Window((rows, columns), (1, 1), (1, 1), before, (counts[0], counts[1]))
    return _of_windows(gradient, filters, window)


def _of_windows(gradient: Tensor, filters: Tensor, window: Window) -> Tensor:
    """Return the windows of gradients times filters ``[rows, columns, D, F]`` backwards."""
    shape = (gradient.shape[0], *window.counts, filters.shape[2])
    sums = Convolution(gradient, filters, window, transposed=True)
    return graph.reshape(Tensor((dims.product(shape[:3]), shape[3]), gradient.dtype, sums), shape)


def _taps_at(kernel: Tensor, place: tuple[int, int], strides: tuple[int, int]) -> Tensor:
    """Return the taps of filters ``[rows, columns, D, F]`` for one place of blocks."""
    rows, columns, depth, count = kernel.shape
    sizes = zip((rows, columns), place, strides, strict=True)
    taps = tuple(dims.floordiv(size - at + (stride - 1), stride) for size, at, stride in sizes)
    return views.sliced(kernel, [*place, 0, 0], (*taps, depth, count), (*strides, 1, 1))


def _interleaved(parts: list[list[Tensor]]) -> Tensor:
    """Return the pixels of blocks, of each place of which there is an image ``[N, H, W, C]``."""
    batch, height, width, channels = parts[0][0].shape
    rows, columns = len(parts), len(parts[0])
    lines = []
    for row in parts:
        apart = [graph.reshape(part, (batch, height, width, 1, channels)) for part in row]
        line = views.concat(apart, 3, "Conv2DBackpropInput")
        lines.append(graph.reshape(line, (batch, height, 1, width * columns, channels)))
    pixels = views.concat(lines, 2, "Conv2DBackpropInput")
    return graph.reshape(pixels, (batch, height * rows, width * columns, channels))


def _filters_of_blocks(kernel: Tensor, forward: Window) -> Tensor:
    """Return filters ``[rows, columns, D, F]`` as those of blocks: of each pixel its own D."""
    (down, across), (depth, count) = forward.strides, kernel.shape[2:]
    rows, columns = (
        size // stride for size, stride in zip(forward.size, forward.strides, strict=True)
    )
    apart = graph.reshape(kernel, (rows, down, columns, across, depth, count))
    blocks = graph.transpose(apart, (0, 2, 1, 3, 4, 5))
    return graph.reshape(blocks, (rows, columns, down * across * depth, count))


def _lower_depthwise_image_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the gradient of the image: each channel has filters of its own."""
    sizes, kernel, gradient = inputs
    rows, columns, channels, multiplier = _filter_sizes(node, gradient, kernel)
    _refuse_uneven(node)
    shape = known_dims(node, sizes, "the image's shape")
    forward = _forward_window(node, shape, (rows, columns), gradient)
    dims.require_equal(shape[3], channels, f"{node.op}: channels")
    dims.require_equal(gradient.shape[3], channels * multiplier, f"{node.op}: gradient")
    return [_backwards(node, gradient, kernel, forward, shape)]


def _lower_filter_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    image, sizes, gradient = inputs
    node.require(image.dtype, *FLOATS)
    rows, columns, depth, count = known_ints(node, sizes, "filter shape")
    window = _forward_window(node, image.shape, (rows, columns), gradient)
    dims.require_equal(image.shape[3], depth, f"{node.op}: channels")
    dims.require_equal(gradient.shape[3], count, f"{node.op}: filters")
    return [filter_gradient(image, gradient, window)]


def filter_gradient(image: Tensor, gradient: Tensor, window: Window) -> Tensor:
    """Return the gradient of filters ``[rows, columns, C, F]`` that images meet in windows."""
    given, (depth, count) = _as_rows(gradient), (image.shape[3], gradient.shape[3])
    result: Node = FilterGradient(image, given, window)
    if window.size == (1, 1) and image.shape[1:3] == window.counts:
        result = MatMul(_as_rows(image), given, transpose_a=True)
    total = Tensor((dims.product((*window.size, depth)), count), image.dtype, result)
    return graph.reshape(total, (*window.size, depth, count))


def _lower_depthwise_filter_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the gradient of the filters: that of each image, and the sum over images.

    16-bit floats are added up in float32.
    """
    image, sizes, gradient = inputs
    node.require(image.dtype, *FLOATS)
    _refuse_uneven(node)
    rows, columns, channels, multiplier = known_ints(node, sizes, "filter shape")
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
    require_gradient(node, gradient.shape[:3], (image[0], *window.counts))
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
