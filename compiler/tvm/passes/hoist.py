"""What a loop's trips need not do: work that is the same in every trip, or for all of them at once.

* A product of what does not depend on what is carried, as that of a sequence's element with the
  weights, is made for all trips in one product before the loop: one row a trip becomes many.
* A part of the columns of a product is the product with a part of the columns: the gates of a cell,
  split from one product, become products side by side, which are finished together.

Both look at how tensors are made of each other, and know no cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import (
    MatMul,
    Parameter,
    Pointwise,
    Reshape,
    Tensor,
    is_squeeze,
)
from composite.compiler.tvm.ir.loop import is_one_value, leaf, varies
from composite.compiler.tvm.ir.views import Slice
from composite.compiler.tvm.ir.walk import reachable, rewrite, topological, users


@dataclass(frozen=True)
class AllTrips:
    """A tensor for all trips at once: at trip t it is element ``at`` along ``axis``."""

    tensor: Tensor
    axis: int
    at: Dim


def hoist(made: Sequence[Tensor], leaves: Sequence[Tensor], counter: str, trips: Dim) -> list:
    """Return the results of a trip with their products taken out that nothing carried goes into."""
    kinds = varies(made, counter, leaves)

    def rule(tensor: Tensor, _: Mapping[Tensor, Tensor]) -> Tensor | None:
        if not isinstance(tensor.node, MatMul) or kinds[tensor] != "counted":
            return None
        lifted = lift(tensor, kinds, counter, trips)
        if lifted is None:
            return None
        one = views.select(lifted.tensor, lifted.axis, lifted.at)
        return graph.reshape(one, tensor.shape)

    instead = rewrite(made, rule)
    return [instead[t] for t in made]


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


def push_slices(made: Sequence[Tensor], leaves: Sequence[Tensor], counter: str) -> list[Tensor]:
    """Return the results with parts of products as products with parts of a factor."""
    kinds = varies(made, counter, leaves)
    order = topological(made)
    readers = users(order)
    split = {t for t in order if kinds[t] == "carried" and _is_cut(t, readers.get(t, []), made)}

    def rule(tensor: Tensor, instead: Mapping[Tensor, Tensor]) -> Tensor | None:
        node = tensor.node
        if not isinstance(node, Slice) or node.operand not in split:
            return None
        return _part(instead[node.operand], node, tensor.shape)

    instead = rewrite(made, rule)
    return [instead[t] for t in made]


def _is_cut(tensor: Tensor, readers: Sequence[Tensor], made: Sequence[Tensor]) -> bool:
    """Return whether a tensor is read in parts of its columns alone, no column twice."""
    if tensor in made or not readers or not tensor.rank:
        return False
    total: Dim = 0
    for reader in readers:
        node = reader.node
        if not isinstance(node, Slice) or set(node.step) != {1}:
            return False
        if reader.shape[:-1] != tensor.shape[:-1]:
            return False
        total = total + reader.shape[-1]
    return total == tensor.shape[-1]


def _part(tensor: Tensor, cut: Slice, shape: Shape) -> Tensor | None:
    """Return columns of a tensor, cut as far below as can be; None if no product is there."""
    node = tensor.node
    if isinstance(node, MatMul):
        return _part_of_product(tensor, node, cut.start[-1], shape)
    if not isinstance(node, Pointwise):
        return None
    operands = []
    found = False
    for operand in node.operands:
        if operand.shape == tensor.shape:
            below = _part(operand, cut, shape)
            found = found or below is not None
            operands.append(below if below is not None else views.sliced(operand, cut.start, shape))
        elif not operand.rank or operand.shape[-1] == 1:
            operands.append(operand)
        elif operand.shape[-1] == tensor.shape[-1]:
            start = [0] * (operand.rank - 1) + [cut.start[-1]]
            operands.append(views.sliced(operand, start, (*operand.shape[:-1], shape[-1])))
        else:
            return None
    if not found:
        return None
    return replace(tensor, shape=shape, node=replace(node, operands=tuple(operands)), known=None)


def _part_of_product(tensor: Tensor, node: MatMul, start: Dim, shape: Shape) -> Tensor:
    b = node.b
    axis = b.rank - (2 if node.transpose_b else 1)
    begin: list[Dim] = [0] * b.rank
    begin[axis] = start
    size = (*b.shape[:axis], shape[-1], *b.shape[axis + 1 :])
    return replace(tensor, shape=shape, node=replace(node, b=views.sliced(b, begin, size)))


def close(
    made: Sequence[Tensor], leaves: Sequence[Tensor], counter: str
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Return what the trips read of outside, a leaf for each, and the results that read the leaves.

    Views of what is read stay in the trips, which see by them how it lies.
    """
    kinds = varies(made, counter, leaves)
    outside = _roots(made, kinds)
    inner: dict[Tensor, Tensor] = {}

    def rule(tensor: Tensor, _: Mapping[Tensor, Tensor]) -> Tensor | None:
        if tensor not in outside:
            return None
        inner[tensor] = leaf(tensor)
        return inner[tensor]

    instead = rewrite(made, rule)
    return list(inner), list(inner.values()), [instead[t] for t in made]


def _roots(made: Sequence[Tensor], kinds: Mapping[Tensor, Any]) -> set[Tensor]:
    """Return what is stored outside for the trips: what their views of outside are views of."""
    readers = [t for t in kinds if kinds[t]]
    roots = [o for t in readers for o in t.node.operands if not kinds[o]]
    roots += [t for t in made if not kinds[t]]

    def below(tensor: Tensor) -> tuple[Tensor, ...]:
        return tensor.node.operands if tensor.node.is_strided_view else ()

    return {
        t
        for t in reachable(roots, below)
        if not (t.node.is_strided_view or isinstance(t.node, Parameter) or is_one_value(t))
    }
