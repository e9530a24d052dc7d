"""Blocks of images that become channels, or elements of the batch, and back.

TensorFlow computes a dilated convolution as one of the images that have, of each block, the pixels
at one place. It becomes a dilated convolution of the whole image again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import Convolution
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.tensor import Tensor, Transpose
from composite.compiler.tvm.ir.walk import unreshaped
from composite.compiler.tvm.lower.joining import padded, paddings
from composite.compiler.tvm.lower.static import as_known, known_ints
from composite.compiler.tvm.nodes.node import OpNode


def _lower_space_to_depth(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower a block of pixels to one pixel: the channels of one place of it after the other's."""
    image, back = _channels_last(node, as_known(inputs[0]))
    batch, height, width, channels = image.shape
    block = _block(node)
    rows, columns = (_divided(node, d, block) for d in (height, width))
    apart = graph.reshape(image, (batch, rows, block, columns, block, channels))
    pixels = graph.transpose(apart, (0, 1, 3, 2, 4, 5))
    result = graph.reshape(pixels, (batch, rows, columns, channels * (block * block)))
    return [graph.transpose(result, back)]


def _lower_depth_to_space(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower one pixel to a block of pixels."""
    image, back = _channels_last(node, as_known(inputs[0]))
    block = _block(node)
    channels = _divided(node, image.shape[3], block * block)
    return [graph.transpose(spread_blocks(image, (block, block), channels), back)]


def spread_blocks(image: Tensor, block: tuple[int, int], channels: Dim) -> Tensor:
    """Return an image ``[N, H, W, rows * columns * C]``, each pixel of which became a block."""
    batch, height, width, _ = image.shape
    rows, columns = block
    apart = graph.reshape(image, (batch, height, width, rows, columns, channels))
    pixels = graph.transpose(apart, (0, 1, 3, 2, 4, 5))
    return graph.reshape(pixels, (batch, height * rows, width * columns, channels))


def _channels_last(node: OpNode, image: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """Return the image as ``[N, H, W, C]``, and the permutation that leads back."""
    layout = node.text("data_format", "NHWC")
    if image.rank != 4 or layout not in {"NHWC", "NCHW"}:
        raise NotCovered(f"{node.op}: data_format {layout}, rank {image.rank}")
    if layout == "NHWC":
        return image, (0, 1, 2, 3)
    return graph.transpose(image, (0, 2, 3, 1)), (0, 3, 1, 2)


def _block(node: OpNode) -> int:
    return node.number("block_size", 0)


def _divided(node: OpNode, dim: Dim, by: int) -> Dim:
    """Return how many blocks there are."""
    count = dims.divide(dim, by) if by > 0 else None
    if count is None:
        raise NotCovered(f"{node.op}: whether {dim} is made of blocks of {by} is not known")
    return count


def _lower_space_to_batch(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower each place of a block to images of their own: those of the first place come first."""
    image, block = as_known(inputs[0]), known_ints(node, inputs[1], "block shape")
    count = len(block)
    image = padded(image, [(0, 0), *paddings(node, count, inputs[2]), *_rest(node, image, count)])
    batch, sizes, rest = image.shape[0], image.shape[1 : 1 + count], image.shape[1 + count :]
    blocks = [_divided(node, size, by) for size, by in zip(sizes, block, strict=True)]
    pairs = [dim for pair in zip(blocks, block, strict=True) for dim in pair]
    apart = graph.reshape(image, (batch, *pairs, *rest))
    apart.reshaped.setdefault(image.shape, image)  # the way back, for a dilated convolution
    order = _places_first(count, apart.rank)
    shape = (dims.product((*block, batch)), *blocks, *rest)
    return [graph.reshape(graph.transpose(apart, order), shape)]


def _lower_batch_to_space(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower the images of each place to the places of blocks, less the crops."""
    images, block = as_known(inputs[0]), known_ints(node, inputs[1], "block shape")
    count = len(block)
    around = [(0, 0), *paddings(node, count, inputs[2]), *_rest(node, images, count)]
    batch = _divided(node, images.shape[0], math.prod(block))
    grown = [size * by for size, by in zip(images.shape[1:], block, strict=False)]
    whole = (batch, *grown, *images.shape[1 + count :])
    first = [before for before, _ in around]
    sizes = tuple(size - sum(cut) for size, cut in zip(whole, around, strict=True))
    for size in sizes[1 : 1 + count]:
        node.at_least(size, 0, f"a size of {size}")
    if not any(first) and (dilated := _dilated(images, block, sizes)) is not None:
        return [dilated]
    return [views.sliced(_joined(images, block, whole), first, sizes)]


def _joined(images: Tensor, block: Sequence[int], shape: Shape) -> Tensor:
    """Return the blocks, of which each image has one place, as images of a shape."""
    count, (batch, *rest) = len(block), shape
    apart = graph.reshape(images, (*block, batch, *images.shape[1 : 1 + count], *rest[count:]))
    order = _places_first(count, apart.rank)
    back = tuple(order.index(axis) for axis in range(apart.rank))
    return graph.reshape(graph.transpose(apart, back), shape)


def _places_first(count: int, rank: int) -> tuple[int, ...]:
    """Return the order of ``[N, H, rows, W, columns, ...]`` with the places of a block first."""
    places = range(2, 2 * count + 1, 2)
    blocks = range(1, 2 * count, 2)
    return (*places, 0, *blocks, *range(2 * count + 1, rank))


def _rest(node: OpNode, image: Tensor, count: int) -> list[tuple[Dim, Dim]]:
    """Return no padding, for each dimension behind those that have blocks."""
    if count < 1 or image.rank < 1 + count:
        raise NotCovered(f"{node.op}: blocks of {count} dimensions of rank {image.rank}")
    return [(0, 0)] * (image.rank - 1 - count)


def _dilated(images: Tensor, block: Sequence[int], shape: Shape) -> Tensor | None:
    """Return a dilated convolution of the whole image, if ``images`` are one of each place.

    As many windows fit into the image as into those of all places together. The first of them are
    what is returned, in a shape.
    """
    rows = unreshaped(images)
    convolution = rows.node
    if not isinstance(convolution, Convolution) or convolution.transposed:
        return None
    window = convolution.window
    if window.strides != (1, 1) or window.dilations != (1, 1) or any(window.before):
        return None
    one = (1,) * (2 - len(block))  # a line is an image of one row
    if (*one, *images.shape[1:-1]) != window.counts:
        return None
    image = _whole(unreshaped(convolution.image), block)
    if image is None or image.rank != len(block) + 2:
        return None
    batch, *sizes, channels = image.shape
    rates, counts = (*one, *block), (*one, *shape[1:-1])
    whole = replace(
        convolution,
        image=graph.reshape(image, (batch, *one, *sizes, channels)),
        window=replace(window, dilations=(rates[0], rates[1]), counts=(counts[0], counts[1])),
    )
    result = Tensor((dims.product(shape[:-1]), rows.shape[1]), rows.dtype, whole)
    return graph.reshape(result, shape)


def _whole(places: Tensor, block: Sequence[int]) -> Tensor | None:
    """Return the image that :func:`_lower_space_to_batch` made the places of blocks of."""
    count, node = len(block), places.node
    if not isinstance(node, Transpose) or node.permutation != _places_first(count, places.rank):
        return None
    given, batch = places.shape[:count], places.shape[count]
    sizes, rest = places.shape[count + 1 : 2 * count + 1], places.shape[2 * count + 1 :]
    if given != tuple(block):
        return None
    shape = (batch, *(size * by for size, by in zip(sizes, block, strict=True)), *rest)
    return node.operand.reshaped.get(shape)


LOWERINGS = {
    "SpaceToDepth": _lower_space_to_depth,
    "DepthToSpace": _lower_depth_to_space,
    "SpaceToBatchND": _lower_space_to_batch,
    "BatchToSpaceND": _lower_batch_to_space,
}
