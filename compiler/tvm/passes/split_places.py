"""Compute the places of a short last dimension apart, where sums follow what puts them together.

The gradient of ``y0, x0, y1, x1 = tf.unstack(boxes, axis=-1)`` puts four results side by side, and
sums what is made of them along other dimensions. Vectors along a dimension of 4 are mostly empty.
So there is a sum for each place, without that dimension: vectors lie along the one before it, and
what the places have in common is one tensor, not a different element of a larger one.

Not for places that are longer than one element, such as the halves of a rotary embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

from composite.compiler.tvm.ir import graph, views
from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Node, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.views import Concat, Slice
from composite.compiler.tvm.ir.walk import over, reachable, rebuilt, topological
from composite.compiler.tvm.passes.rewriting import rewritten

_MOST = 8
"""Places: each is code of its own."""


def split_places(function: Function) -> Function:
    """Return the function with a reduction for each place of what was put together."""
    parted = {t: t.node for t in topological(function.outputs) if isinstance(t.node, Reduce)}
    parted = {t: node for t, node in parted.items() if _is_parted(node)}
    if not parted:
        return function
    split = {part for node in parted.values() for part in _same_places(node.operand)}
    places = _Places()

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        again = rebuilt(tensor, made)
        if tensor in parted:
            size = parted[tensor].operand.shape[-1]
            assert isinstance(size, int)
            parts = [places.of(again, k) for k in range(size)]
            apart = [graph.reshape(t, (*t.shape, 1)) for t in parts]
            return views.concat(apart, again.rank - 1, "split-places")
        node = tensor.node
        if isinstance(node, Slice) and node.operand in split and tensor.shape[-1] == 1:
            place = _first_place(tensor, node)
            if place is not None:
                return graph.reshape(places.of(made[node.operand], place), tensor.shape)
        if isinstance(node, Reshape) and isinstance(node.operand.node, Slice):
            return graph.reshape(made[node.operand], tensor.shape)
        return again

    return rewritten(function, rule)


def _is_parted(node: Reduce) -> bool:
    """Return whether the operand was put together, element by element, along what stays last."""
    last = node.operand.shape[-1]
    if node.operand.rank - 1 in node.axes or not isinstance(last, int) or not 2 <= last <= _MOST:
        return False
    return any(
        isinstance(t.node, Concat)
        and t.node.axis == t.rank - 1
        and all(part.shape[-1] == 1 for part in t.node.operands)
        for t in _same_places(node.operand)
    )


def _same_places(tensor: Tensor) -> list[Tensor]:
    """Return what the places of a tensor are made of, each of the same place."""

    def below(t: Tensor) -> list[Tensor]:
        if not isinstance(t.node, Pointwise):
            return []
        return [x for x in t.node.operands if x.rank and x.shape[-1] == tensor.shape[-1]]

    return reachable([tensor], below)


def _first_place(tensor: Tensor, node: Slice) -> int | None:
    """Return where a slice begins that has all elements of the dimensions before the last."""
    same = tensor.shape[:-1] == node.operand.shape[:-1]
    uncut = same and not any(node.start[:-1]) and set(node.step[:-1]) <= {1}
    start = node.start[-1]
    return start if uncut and isinstance(start, int) else None


def _part_at(node: Concat, place: int) -> tuple[Tensor, int]:
    """Return the part that a place lies in, and its place there; all have known sizes."""
    start = 0
    for part in node.operands:
        size = part.shape[-1]
        assert isinstance(size, int), "a size within a dimension of known size"
        if place < start + size:
            return part, place - start
        start += size
    raise IndexError(f"place {place} of a dimension of {start}")


_Place = tuple[Tensor, int]
"""A tensor, and a place of its last dimension."""


class _Places:
    """Tensors at one place of their last dimension, which they then lack: each is made once."""

    def __init__(self) -> None:
        self._made: dict[_Place, Tensor] = {}

    def of(self, tensor: Tensor, place: int) -> Tensor:
        """Return the elements of a tensor at a place."""
        pending = [(tensor, place)]
        while pending:
            sources = _sources(*pending[-1])
            missing = [one for one in sources if one not in self._made]
            pending += missing
            if not missing:
                own = pending.pop()
                made = {source: self._made[source, at] for source, at in sources}
                self._made[own] = self._made.get(own) or _at(*own, made)
        return self._made[tensor, place]


def _keeps_places(node: Node) -> TypeGuard[Pointwise | Reduce]:
    """Return whether a place is made of the operands' places alone, by the same node."""
    if isinstance(node, Reduce):
        return node.operand.rank - 1 not in node.axes
    return isinstance(node, Pointwise)


def _sources(tensor: Tensor, place: int) -> list[_Place]:
    """Return the places of other tensors that a place is made of."""
    node = tensor.node
    if _keeps_places(node):
        # A dimension of 1 has the same for all places.
        return [(t, 0 if t.shape[-1] == 1 else place) for t in node.operands if t.rank]
    if isinstance(node, Concat) and node.axis == tensor.rank - 1:
        return [_part_at(node, place)]
    if isinstance(node, Slice) and (first := _first_place(tensor, node)) is not None:
        return [(node.operand, first + place * node.step[-1])]
    if isinstance(node, Reshape) and node.operand.shape[-1:] == tensor.shape[-1:]:
        return [(node.operand, place)]
    return []


def _at(tensor: Tensor, place: int, sources: Mapping[Tensor, Tensor]) -> Tensor:
    """Return a tensor at a place, made of its sources there."""
    node, outer = tensor.node, tensor.shape[:-1]
    if _keeps_places(node):
        return replace(tensor, shape=outer, node=over(node, sources), known=None)
    if sources:
        (source,) = sources.values()
        return graph.reshape(source, outer)
    if tensor.shape[-1] == 1:
        return graph.reshape(tensor, outer)
    return views.select(tensor, len(outer), place)
