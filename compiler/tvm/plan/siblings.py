"""Join reductions of the same elements: a part of the plan for devices that write them together.

The gradient of what broadcasts is summed along what was repeated, once for each operand: scale and
offset of a norm, the corners of boxes. Such sums read the same elements, or are made of the same
ones. Side by side in one set of loops, what they have in common is read and computed once.

Not for reductions within rows: those are joined with all else on the same rows, by
:mod:`.row_stages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Constant, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import reachable, topological
from composite.compiler.tvm.plan.stage import Stage

MOST = 8
"""Reductions side by side: each has a running total in registers."""

_NEAR = 16
"""How many of the last stages are searched, so that long functions take linear time."""


def join_siblings(stages: Iterable[Stage], stored: frozenset[Tensor]) -> list[Stage]:
    """Return the stages, each reduction joined with an earlier one that it has elements with."""
    joined: list[Stage] = []
    needed: dict[Stage, set[Tensor]] = {}
    for stage in stages:
        needed[stage] = _needed(stage, stored)
        place = _sibling(stage, joined, needed)
        if place is None:
            joined.append(stage)
            continue
        first, after = joined[place], joined[place + 1 :]
        stores, beside = [*first.stores, *stage.stores], first.beside + stage.anchors
        both = replace(first, stores=stores, beside=beside)
        needed[both] = needed[first] | needed[stage]
        waits = any(one.made & needed[stage] for one in after)
        joined[place:] = [*after, both] if waits else [both, *after]
    return joined


def _sibling(stage: Stage, before: list[Stage], needed: Mapping[Stage, set[Tensor]]) -> int | None:
    """Return the place of a stage to join.

    Either the stage needs nothing that is made behind that place, and of what is made there only
    what both have when they have reduced, and may come to that place; or nothing reads what is made
    there and it may wait for the stage.
    """
    node = _across(stage)
    if node is None:
        return None
    size = product(node.operand.shape)
    reduced = {
        t for t in needed[stage] if product(t.shape) == size and not isinstance(t.node, Constant)
    }
    made: set[Tensor] = set()  # behind a place
    read = set(needed[stage])
    for first in reversed(before[-_NEAR:]):
        may_wait = not first.made & read
        may_come = not made & needed[stage] and _comes_to(stage, node, first)
        made |= first.made
        read |= needed[first]
        if (may_wait or may_come) and _are_alike(first, stage) and reduced & needed[first]:
            return before.index(first)
    return None


def _comes_to(stage: Stage, node: Reduce, first: Stage) -> bool:
    """Return whether all that a stage needs of an earlier one is there when both have reduced.

    What it reduces must not be made of it, and what it stores only element by element.
    """

    def below(tensor: Tensor) -> tuple[Tensor, ...]:
        return () if tensor in first.made or tensor in stage.anchors else tensor.node.operands

    if first.made & {*reachable([node.operand], below)}:
        return False
    made_of = set(first.made)
    for tensor in topological(stage.stores, below):
        through = [t for t in tensor.node.operands if t in made_of]
        if tensor in first.made or not through:
            continue
        if not isinstance(tensor.node, Pointwise) or any(t.shape != stage.shape for t in through):
            return False
        made_of.add(tensor)
    return True


def _across(stage: Stage) -> Reduce | None:
    """Return the reduction of a stage, if the last dimension stays after it."""
    node = stage.anchor.node if stage.anchor is not None else None
    return node if isinstance(node, Reduce) and node.operand.rank - 1 not in node.axes else None


def _are_alike(first: Stage, stage: Stage) -> bool:
    one, other = _across(first), _across(stage)
    if one is None or other is None or len(first.anchors) == MOST:
        return False
    if (one.axes, one.operand.shape) != (other.axes, other.operand.shape):
        return False
    return compute_dtype(one.operand.dtype) == compute_dtype(other.operand.dtype)


def _needed(stage: Stage, stored: frozenset[Tensor]) -> set[Tensor]:
    """Return what a stage reads, and what it makes on the way to its results."""
    own = stage.made

    def below(tensor: Tensor) -> tuple[Tensor, ...]:
        return () if tensor in stored and tensor not in own else tensor.node.operands

    return {*reachable(own, below)} - own
