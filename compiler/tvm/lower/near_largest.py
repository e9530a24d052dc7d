"""What the windows of a pool over volumes give to their largest elements.

TensorFlow takes all elements less than 1e-5 below the largest of a window for it. So does this,
element by element: volumes are cut into blocks as large as strides. An element of block ``m`` is in
windows ``m``, ``m - 1``, ...; for each of these offsets, all windows are compared with blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from composite.compiler.tvm.ir import graph, views
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.joining import padded
from composite.compiler.tvm.lower.windows import Side, require_gradient, sides_of, spatial
from composite.compiler.tvm.math.numeric import absolute, add, choose, like
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_NEAR = 1e-5
_MOST_OFFSETS = 8
"""Windows that an element may be in: each offset is code of its own."""


def near_largest(
    node: OpNode, volume: Tensor, largest_ones: Tensor, gradient: Tensor
) -> Tensor | None:
    """Return the gradient of volumes; None where an element is in many windows, or sizes vary."""
    shape, sizes = volume.shape, [n for n in volume.shape[1:4] if isinstance(n, int)]
    sides = sides_of(node, shape, spatial(node, "ksize", 3))
    require_gradient(node, gradient.shape, (shape[0], *(s.count for s in sides), shape[4]))
    offsets = list(itertools.product(*(range(-(-s.size // s.stride)) for s in sides)))
    if len(offsets) > _MOST_OFFSETS or len(sizes) != len(sides):
        return None
    counts = [-(-(s.before + size) // s.stride) for s, size in zip(sides, sizes, strict=True)]
    around = [
        (side.before, count * side.stride - side.before - size)
        for side, count, size in zip(sides, counts, sizes, strict=True)
    ]
    blocks = _blocks_of(padded(volume, [(0, 0), *around, (0, 0)]), counts, sides)
    total: Tensor | None = None
    for offset in offsets:
        others = [_for_blocks(windows, counts, offset) for windows in (largest_ones, gradient)]
        part = _given_at(node, blocks, others, sides, offset)
        total = part if total is None else pointwise("AddV2", add, (total, part), part.dtype)
    if total is None:
        return None
    whole = (count * side.stride for count, side in zip(counts, sides, strict=True))
    given = graph.reshape(total, (shape[0], *whole, shape[4]))
    return views.sliced(given, [0, *(side.before for side in sides), 0], shape)


def _blocks_of(volume: Tensor, counts: Sequence[int], sides: Sequence[Side]) -> Tensor:
    apart = [n for pair in zip(counts, (s.stride for s in sides), strict=True) for n in pair]
    return graph.reshape(volume, (volume.shape[0], *apart, volume.shape[4]))


def _for_blocks(windows: Tensor, counts: Sequence[int], offset: Sequence[int]) -> Tensor:
    """Return for each block the window so far before it; zero where there is none."""
    batch, *_, channels = windows.shape
    sizes = [n for n in windows.shape[1:4] if isinstance(n, int)]  # as are those of the volumes
    around = [
        (before, max(0, count - before - size))
        for before, count, size in zip(offset, counts, sizes, strict=True)
    ]
    wide = padded(windows, [(0, 0), *around, (0, 0)])
    moved = views.sliced(wide, [0] * 5, (batch, *counts, channels))
    return graph.reshape(moved, (batch, *(n for c in counts for n in (c, 1)), channels))


def _given_at(
    node: OpNode,
    blocks: Tensor,
    others: Sequence[Tensor],
    sides: Sequence[Side],
    offset: Sequence[int],
) -> Tensor:
    limits = [side.size - at * side.stride for side, at in zip(sides, offset, strict=True)]
    partial = [i for i, side in enumerate(sides) if limits[i] < side.stride]
    places = [views.iota(sides[i].stride, "int32", blocks.rank, 2 + 2 * i) for i in partial]

    def body(block: Block, x: Expr, largest_one: Expr, given: Expr, *within: Expr) -> Expr:
        none = like(0.0, given)
        near = absolute(block, x - largest_one) < like(_NEAR, x)
        part = choose(near, given, none)
        for i, place in zip(partial, within, strict=True):
            part = choose(place < like(limits[i], place), part, none)
        return part

    return pointwise(node.op, body, (blocks, *others, *places), blocks.dtype, cost=4)
