"""Convolutions over images: dense, in groups, and channel by channel; gradients of the dense."""

from __future__ import annotations

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.anchors import Convolution, FilterGradient, MatMul
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import Node, Tensor
from composite.compiler.tvm.ir.window import Window
from composite.compiler.tvm.lower.static import known_dims, known_ints
from composite.compiler.tvm.lower.unary import FLOATS
from composite.compiler.tvm.lower.windows import per_window, window_of
from composite.compiler.tvm.read.node import OpNode


def _lower_conv2d(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    image, kernel = inputs
    rows, columns, depth, count = _filter_sizes(node, image, kernel)
    channels = image.shape[3]
    if not isinstance(channels, int) or channels % depth or count % (channels // depth):
        raise NotCovered(f"{node.op}: {channels} channels for filters {kernel.shape}")
    return [_convolution(node, image, kernel, (rows, columns))]


def _lower_depthwise(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower filters ``[rows, columns, C, M]``: a convolution in C groups of M filters."""
    image, kernel = inputs
    rows, columns, channels, multiplier = _filter_sizes(node, image, kernel)
    dims.require_equal(image.shape[3], channels, node.op)
    strides = node.numbers("strides")
    if strides[1] != strides[2] or any(d != 1 for d in node.numbers("dilations")):
        raise NotCovered(f"{node.op}: unequal strides, or dilations")  # nor has TF
    kernel = graph.reshape(kernel, (rows, columns, 1, channels * multiplier))
    return [_convolution(node, image, kernel, (rows, columns))]


def _filter_sizes(node: OpNode, image: Tensor, kernel: Tensor) -> tuple[int, int, int, int]:
    node.require(image.dtype, *FLOATS)
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
    count = dims.product(shape[:3])
    if (rows, columns) == (1, 1) and shape[1:3] == forward.counts:
        given = _as_rows(gradient)
        result = MatMul(given, graph.reshape(kernel, kernel.shape[2:]), transpose_b=True)
        return [graph.reshape(Tensor((count, depth), gradient.dtype, result), shape)]
    before = [r - 1 - b for r, b in zip(forward.reach, forward.before, strict=True)]
    if forward.strides != (1, 1) or min(before) < 0:
        raise NotCovered(f"{node.op}: strides {forward.strides}, padding {forward.before}")
    around, left = before
    window = Window((rows, columns), (1, 1), (1, 1), (around, left), (shape[1], shape[2]))
    node_of = Convolution(gradient, kernel, window, transposed=True)
    return [graph.reshape(Tensor((count, depth), gradient.dtype, node_of), shape)]


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
}
