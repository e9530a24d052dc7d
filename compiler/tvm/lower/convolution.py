"""Convolutions over images: dense, in groups, and channel by channel."""

from __future__ import annotations

from .. import dims, graph
from ..errors import NotCovered
from ..graph import Convolution, MatMul, Tensor
from ..node import OpNode
from ..window import Window
from .unary import FLOATS
from .windows import per_window, window_of


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
    window = window_of(node, image, size)
    count = dims.product((image.shape[0], *window.counts))
    result: graph.Node = Convolution(image, kernel, window)
    if size == (1, 1) and window.strides == (1, 1) and _is_whole(image, kernel, window):
        depth = kernel.shape[2]
        rows = graph.reshape(image, (count, depth))
        result = MatMul(rows, graph.reshape(kernel, (depth, kernel.shape[3])))
    return per_window(Tensor((count, kernel.shape[3]), image.dtype, result), image, window)


def _is_whole(image: Tensor, kernel: Tensor, window: Window) -> bool:
    """Return whether each pixel is a window, and there is one group."""
    return image.shape[1:3] == window.counts and image.shape[3] == kernel.shape[2]


LOWERINGS = {
    "Conv2D": _lower_conv2d,
    "DepthwiseConv2dNative": _lower_depthwise,
}
