"""Tensors that each trip of a loop makes, made for all trips at once.

A slice at the loop's counter is a part of a slice over all trips; element-wise work and products
with a factor that stays are the same work on more rows. Nothing that is carried can be lifted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import MatMul
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import is_squeeze
from composite.compiler.tvm.ir.tensor import Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.views import Slice


@dataclass(frozen=True)
class AllTrips:
    """A tensor for all trips at once: at trip t it is element ``at`` along ``axis``."""

    tensor: Tensor
    axis: int
    at: Dim


def lift(tensor: Tensor, kinds: Mapping, counter: str, trips: Dim) -> AllTrips | None:
    """Return a tensor that follows from the counter for all trips at once, if it can be."""
    node = tensor.node
    if isinstance(node, Slice):
        return _lift_slice(tensor, node, counter, trips)
    if isinstance(node, Reshape):
        below = lift(node.operand, kinds, counter, trips)
        if below is None or not is_squeeze(tensor.shape, _one(below)):
            return None
        return below
    if isinstance(node, Pointwise):
        return _lift_pointwise(tensor, node, kinds, counter, trips)
    if isinstance(node, MatMul):
        return _lift_product(tensor, node, kinds, counter, trips)
    return None


def _one(lifted: AllTrips) -> Shape:
    """Return the shape of one trip's tensor, without the axis of the trips."""
    shape = lifted.tensor.shape
    return (*shape[: lifted.axis], *shape[lifted.axis + 1 :])


def _lift_slice(tensor: Tensor, node: Slice, counter: str, trips: Dim) -> AllTrips | None:
    trip = dims.symbol(counter)
    moving = [i for i, start in enumerate(node.start) if dims.mentions(start, counter)]
    if len(moving) != 1 or tensor.shape[moving[0]] != 1:
        return None
    (axis,) = moving
    start = node.start[axis]
    for first in (start - trip, start + trip - (trips - 1)):
        if dims.mentions(first, counter):
            continue
        begin = [*node.start[:axis], first, *node.start[axis + 1 :]]
        size = (*tensor.shape[:axis], trips, *tensor.shape[axis + 1 :])
        step = (*node.step[:axis], 1, *node.step[axis + 1 :])
        whole = views.sliced(node.operand, begin, size, step)
        return AllTrips(whole, axis, start - first)
    return None


def _lift_pointwise(
    tensor: Tensor, node: Pointwise, kinds: Mapping, counter: str, trips: Dim
) -> AllTrips | None:
    """Lift where each operand is the same in all trips, or lies as the first that is not."""
    lifted: dict[Tensor, AllTrips] = {}
    for operand in node.operands:
        if kinds[operand]:
            below = lift(operand, kinds, counter, trips)
            if below is None or operand.shape != tensor.shape:
                return None
            lifted[operand] = below
    first = next(iter(lifted.values()))
    same = all(
        (o.axis, o.at) == (first.axis, first.at) and _one(o) == _one(first) for o in lifted.values()
    )
    if not same or _one(first) != tensor.shape:
        return None
    operands = []
    for operand in node.operands:
        if operand in lifted:
            operands.append(lifted[operand].tensor)
            continue
        full = (1,) * (tensor.rank - operand.rank) + operand.shape
        operands.append(
            graph.reshape(operand, (*full[: first.axis], 1, *full[first.axis :]))
            if operand.shape
            else operand
        )
    whole = graph.pointwise(node.op, node.body, tuple(operands), tensor.dtype, cost=node.cost)
    return replace(first, tensor=whole)


def _lift_product(
    tensor: Tensor, node: MatMul, kinds: Mapping, counter: str, trips: Dim
) -> AllTrips | None:
    """Lift a matrix's product with a factor that stays: the trips' rows become rows of one."""
    if not is_by_rows(node, kinds):
        return None
    below = lift(node.a, kinds, counter, trips)
    if below is None or below.axis == below.tensor.rank - 1:
        return None
    if below.tensor.shape[-1] != node.a.shape[-1] or not is_squeeze(_one(below), node.a.shape):
        return None
    return replace(below, tensor=times_factor(below.tensor, tensor, node))


def is_by_rows(node: MatMul, kinds: Mapping) -> bool:
    """Return whether a product of matrices takes each row of the first times one that stays."""
    return not (kinds[node.b] or node.transpose_a) and node.a.rank == node.b.rank == 2


def times_factor(rows: Tensor, one: Tensor, node: MatMul) -> Tensor:
    """Return all trips' rows times the factor that stays of the product ``one``, as one product."""
    flat = flat_rows(rows)
    columns = one.shape[-1]
    product = Tensor((flat.shape[0], columns), one.dtype, replace(node, a=flat))
    return graph.reshape(product, (*rows.shape[:-1], columns))


def flat_rows(tensor: Tensor) -> Tensor:
    """Return a tensor as the matrix of its rows."""
    return graph.reshape(tensor, (dims.product(tensor.shape[:-1]), tensor.shape[-1]))
