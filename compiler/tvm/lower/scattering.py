"""Rows at indices that are data: combined, as segments and in gradients of gathers, or replaced."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from ml_dtypes import finfo

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import Combine, Scatter
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Tensor
from composite.compiler.tvm.ir.views import Gather
from composite.compiler.tvm.lower.computed_places import as_tensor, clamped, places
from composite.compiler.tvm.lower.reduction import ADD, PRODUCT
from composite.compiler.tvm.lower.static import as_known, known_dims
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math.numeric import add, choose, equal, like, sub
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_MOST_PARTS = 4
"""Parts of one tensor that are another's: each element asks of each whether it lies there."""


def _scatter(
    updates: Tensor,
    indices: tuple[Tensor, ...],
    outer: Shape,
    inner: Shape,
    combine: Combine = ADD,
) -> Tensor:
    """Return rows of shape ``inner`` combined at places in ``outer``."""
    width = dims.product(inner)
    rows = graph.reshape(updates, (*indices[0].shape, width))
    result = Tensor((*outer, width), updates.dtype, Scatter(rows, indices, combine))
    return graph.reshape(result, (*outer, *inner))


def _of_extreme(op: str, dtype: str) -> Combine:
    """Return the way to combine of UnsortedSegmentMax and UnsortedSegmentMin.

    As in TF, a segment without rows has the least (largest) finite number, and so has one of which
    all are infinitely less (more); after a NaN, the next row counts again.
    """
    largest = op == "UnsortedSegmentMax"
    kind = finfo(dtype) if dtype in FLOATS else np.iinfo(dtype)
    start = kind.min if largest else kind.max
    identity = float(start) if dtype in FLOATS else int(start)

    def apply(_: Block, before: Expr, row: Expr) -> Expr:
        return choose(before > row if largest else before < row, before, row)

    return Combine(op, lambda _: identity, apply)


def _lower_segments(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower UnsortedSegmentSum and its like: what has a negative number is in no segment."""
    data, segments = inputs[0], as_known(inputs[1])
    node.require(data.dtype, *NUMBERS)
    node.require(segments.dtype, "int32", "int64")
    (count,) = known_dims(node, inputs[2], "num_segments")
    node.at_least(count, 0, f"num_segments of {count}")
    combine = {"UnsortedSegmentSum": ADD, "UnsortedSegmentProd": PRODUCT}.get(node.op)
    for a, b in zip(data.shape, segments.shape, strict=False):
        dims.require_equal(a, b, node.op)

    def present(_: Block, i: Expr) -> Expr:
        return choose(i < like(0, i), like(0, i), i)

    def place(_: Block, i: Expr, within: Expr) -> Expr:
        return choose(i < like(0, i), like(-1, i), within)

    # A number that is too large fails; a negative one is left out, and must not.
    within = pointwise("Present", present, (segments,), segments.dtype)
    within = views.checked(within, count)
    indices = pointwise("Place", place, (segments, within), segments.dtype)
    combine = combine or _of_extreme(node.op, data.dtype)
    return [_scatter(data, (indices,), (count,), data.shape[segments.rank :], combine)]


def _lower_scatter_nd(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    return [_scattered(node, inputs[0], inputs[1], known_dims(node, inputs[2], "shape"))]


def _lower_tensor_scatter(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower TensorScatterAdd and TensorScatterSub: what is added to a place is summed up first."""
    tensor, indices, updates = inputs
    total = _scattered(node, indices, updates, tensor.shape)
    combine = add if node.op == "TensorScatterAdd" else sub
    return [pointwise(node.op, combine, (tensor, total), tensor.dtype)]


def _scattered(node: OpNode, given: Tensor, updates: Tensor, shape: Shape) -> Tensor:
    """Return the sums of updates at each place of a shape, 0 where there is none."""
    indices = as_known(given)
    node.require(updates.dtype, *NUMBERS)
    node.require(indices.dtype, "int32", "int64")
    depth: Dim = indices.shape[-1] if indices.rank else 0
    if not isinstance(depth, int) or not 1 <= depth <= len(shape):
        raise NotCovered(f"{node.op}: indices of {depth} dimensions into rank {len(shape)}")
    wanted = (*indices.shape[:-1], *shape[depth:])
    if updates.shape != wanted:
        raise NotCovered(f"{node.op}: updates of shape {updates.shape}, not {wanted}")
    columns = [views.select(indices, indices.rank - 1, i) for i in range(depth)]
    within = tuple(views.checked(t, d) for t, d in zip(columns, shape, strict=False))
    return _scatter(updates, within, shape[:depth], shape[depth:])


def _lower_update_slice(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower XlaDynamicUpdateSlice, which moves a part that would lie outside to the edge."""
    tensor, update, indices = (as_known(t) for t in inputs)
    node.require(tensor.dtype)
    begin = places(node, indices, "indices")
    if not len(begin) == tensor.rank == update.rank:
        raise NotCovered(f"{node.op}: {len(begin)} indices, {update.rank} dims of {tensor.rank}")
    starts = {}
    for i, (first, part, whole) in enumerate(zip(begin, update.shape, tensor.shape, strict=True)):
        node.at_least(whole - part, 0, f"a part of {part} of size {whole}")
        if part != whole:
            starts[i] = clamped(as_tensor(first, indices.dtype), whole - part)
    return [updated(node, tensor, update, starts)]


def _lower_scatter_update(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower TensorScatterUpdate of a few parts: of two at one place the last one stays."""
    tensor, indices, updates = (as_known(t) for t in inputs)
    node.require(tensor.dtype)
    node.require(indices.dtype, "int32", "int64")
    depth = indices.shape[-1] if indices.rank else 0
    count = dims.product(indices.shape[:-1])
    if not isinstance(depth, int) or not 1 <= depth <= tensor.rank:
        raise NotCovered(f"{node.op}: indices of {depth} dimensions into rank {tensor.rank}")
    if not isinstance(count, int) or count > _MOST_PARTS:
        raise NotCovered(f"{node.op}: {count} updates (at most {_MOST_PARTS})")
    inner = tensor.shape[depth:]
    if updates.shape != (*indices.shape[:-1], *inner):
        raise NotCovered(f"{node.op}: updates of shape {updates.shape}")
    rows = graph.reshape(indices, (count, depth))
    parts = graph.reshape(updates, (count, *inner))
    for k in range(count):
        row = places(node, views.select(rows, 0, k), "indices")
        starts = {
            axis: views.checked(as_tensor(place, indices.dtype), size)
            for axis, (place, size) in enumerate(zip(row, tensor.shape, strict=False))
        }
        part = graph.reshape(views.select(parts, 0, k), (*[1] * depth, *inner))
        tensor = updated(node, tensor, part, starts)
    return [tensor]


def updated(node: OpNode, tensor: Tensor, update: Tensor, starts: Mapping[int, Tensor]) -> Tensor:
    """Return a tensor with ``update`` in it, which begins along some axes where scalars say.

    It is as large as the tensor along all other axes, and lies within it.
    """
    if not starts:
        return update
    bounds: list[Tensor] = []
    single = []
    for axis, start in starts.items():
        size = update.shape[axis]
        single.append(size == 1)
        bounds += [views.iota(tensor.shape[axis], start.dtype, tensor.rank, axis), start]
        if size != 1:
            bounds.append(as_tensor(size, start.dtype))
            update = _at_places_of(tensor, update, axis, start)
    operands = (tensor, update, *bounds)
    return pointwise(node.op, _chosen(single), operands, tensor.dtype, cost=2 * len(starts))


def _at_places_of(tensor: Tensor, update: Tensor, axis: int, start: Tensor) -> Tensor:
    """Return an update under the places of the tensor along an axis; 0 where it does not lie."""
    place = views.iota(tensor.shape[axis], start.dtype)
    index = pointwise("Sub", sub, (place, start), start.dtype)
    kept = tuple(i for i in range(tensor.rank) if i != axis)
    shape = (*update.shape[:axis], tensor.shape[axis], *update.shape[axis + 1 :])
    element = Gather(update, (index,), (axis,), (axis,), kept, zero_elsewhere=True)
    return Tensor(shape, update.dtype, element)


def _chosen(single: list[bool]) -> Body:
    """Return the body that takes the update's element where all places are within its part.

    Of each axis its operands are the place, the start, and the size unless that is 1.
    """

    def body(_: Block, x: Expr, new: Expr, *bounds: Expr) -> Expr:
        rest = iter(bounds)
        for is_single in single:
            place, start = next(rest), next(rest)
            if is_single:
                new = choose(equal(place, start), new, x)
            else:
                new = choose(place >= start, choose(place < start + next(rest), new, x), x)
        return new

    return body


LOWERINGS = {
    "UnsortedSegmentSum": _lower_segments,
    "UnsortedSegmentMax": _lower_segments,
    "UnsortedSegmentMin": _lower_segments,
    "UnsortedSegmentProd": _lower_segments,
    "ScatterNd": _lower_scatter_nd,
    "TensorScatterAdd": _lower_tensor_scatter,
    "TensorScatterSub": _lower_tensor_scatter,
    "TensorScatterUpdate": _lower_scatter_update,
    "XlaDynamicUpdateSlice": _lower_update_slice,
}
