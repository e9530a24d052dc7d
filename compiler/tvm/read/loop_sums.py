"""Compute a sum over the trips of a loop behind the loop, instead of carrying it.

The gradient of a recurrent weight is a sum in which each trip adds a product of its own rows. The
trips then only write their rows, and one product of all rows follows the loop: as deep as all the
products together, and computed once. Sums of rows are computed likewise. The gradient of a sequence
adds each trip's row at its own place, so it is the array of the rows.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.anchors import MatMul, Reduce
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.lists import Among
from composite.compiler.tvm.ir.tensor import Pointwise, Tensor
from composite.compiler.tvm.lower.arithmetic import plus
from composite.compiler.tvm.lower.joining import padded
from composite.compiler.tvm.lower.reduction import ADD, reduce_over
from composite.compiler.tvm.passes.lift import flat_rows
from composite.compiler.tvm.read.loop_builder import After, LoopBuilder, unsqueezed

_SUMS = ("AddN", "AddV2", "Add")


def sum_of_trips(
    loop: LoopBuilder, argument: Tensor, initial: Tensor, following: Tensor
) -> After | None:
    """Return a carried value as its initial value plus what all trips add; None if it is not."""
    added = _addends(following, argument)
    if not added or "float" not in argument.dtype:
        return None
    totals = loop.attempt(lambda: _totals(loop, added))
    if totals is None:
        return None

    def after() -> Tensor:
        parts = [] if graph.is_zero(initial) else [initial]
        return functools.reduce(plus, [*parts, *(total() for total in totals)])

    return after


def is_sum_of_rows(argument: Tensor, following: Tensor) -> bool:
    """Return whether the last of what is added to a value is a sum of rows."""
    added = _addends(following, argument)
    return bool(added) and isinstance(unsqueezed(added[-1]).node, Reduce)


def _addends(total: Tensor, start: Tensor) -> list[Tensor]:
    """Return what is added to ``start`` to make ``total``, nothing if it is made otherwise."""
    node = total.node
    if not isinstance(node, Pointwise) or node.op not in _SUMS or len(node.operands) != 2:
        return []
    if any(t.shape != total.shape for t in node.operands):
        return []
    for one, other in (node.operands, node.operands[::-1]):
        if one is start:
            return [other]
        before = _addends(one, start)
        if before:
            return [*before, other]
    return []


def _totals(loop: LoopBuilder, added: list[Tensor]) -> list[After] | None:
    totals = []
    for addend in added:
        total = _total(loop, addend)
        if total is None:
            return None
        totals.append(total)
    return totals


def _total(loop: LoopBuilder, addend: Tensor) -> After | None:
    """Return the sum over all trips of a tensor that each of them makes."""
    source = unsqueezed(addend)
    node = source.node
    total = None
    if isinstance(node, Among):
        total = _moved(loop, source, node)
    elif isinstance(node, MatMul):
        total = _deep_product(loop, source, node)
    elif isinstance(node, Reduce) and node.combine is ADD:
        total = _reduced(loop, node)
    if total is None:
        return None
    return lambda: graph.reshape(total(), addend.shape)


def _reduced(loop: LoopBuilder, node: Reduce) -> After | None:
    """Return the sum of all trips' rows, over the axes that each trip sums over too."""
    rows = loop.rows(node.operand, loop.place_of(node.operand))
    if rows is None:
        return None
    axes = (0, *(a + 1 for a in node.axes))
    return lambda: reduce_over(ADD, rows(), axes, keep=False)


def _moved(loop: LoopBuilder, source: Tensor, node: Among) -> After | None:
    """Return rows that each lie at a place of their own, and zeros around them, as a dimension."""
    count = source.shape[node.axis]
    first = loop.first_visited(node.place, count)
    if first is None:
        return None
    place = node.place - first
    rows = loop.product_of_rows(node.operand, place) or loop.rows(node.operand, place)
    if rows is None:
        return None
    order = list(range(1, source.rank))
    order.insert(node.axis, 0)
    around: list[tuple[Dim, Dim]] = [(0, 0)] * source.rank
    around[node.axis] = (first, count - first - loop.trips)
    return lambda: padded(graph.transpose(rows(), tuple(order)), around)


def _deep_product(loop: LoopBuilder, source: Tensor, node: MatMul) -> After | None:
    """Return the sum of products ``a^T b`` as one product of all rows of a and of b."""
    if not node.transpose_a or node.transpose_b or source.rank != 2:
        return None
    lifted = [one for one in (loop.lifted(node.a), loop.lifted(node.b)) if one is not None]
    place = lifted[0].at if lifted else loop.trip
    if not loop.visits_each(place):
        return None
    a, b = loop.rows(node.a, place), loop.rows(node.b, place)
    if a is None or b is None:
        return None
    return lambda: replace(source, node=replace(node, a=flat_rows(a()), b=flat_rows(b())))
