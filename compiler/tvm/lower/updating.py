"""Tensors of which one part, at places that are data, is another tensor's."""

from __future__ import annotations

from collections.abc import Mapping

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Tensor
from composite.compiler.tvm.ir.views import Gather
from composite.compiler.tvm.lower.computed_places import as_tensor, clamped, places
from composite.compiler.tvm.lower.static import as_known
from composite.compiler.tvm.math.numeric import choose, equal, sub
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_MOST_PARTS = 4
"""Parts of one tensor that are another's: each element asks of each whether it lies there."""


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
    "XlaDynamicUpdateSlice": _lower_update_slice,
    "TensorScatterUpdate": _lower_scatter_update,
}
