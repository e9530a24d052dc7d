"""Recognize the softmax that is written out: exponentials of numbers less the largest of their row.

``exp(x - max(x))`` takes no exponential of positive numbers, which costs less than one of any. What
is divided by the sum of those exponentials, which is at least 1, is multiplied by its reciprocal.
Where all that is made of a row reads that sum too, the maximum need not keep NaN, which makes the
sum NaN anyway. The result is what :mod:`..lower.softmax` makes of TensorFlow's own ops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.graph import Function, pointwise
from composite.compiler.tvm.ir.tensor import Expr, Pointwise, Reshape, Tensor
from composite.compiler.tvm.ir.walk import rebuilt, topological, users
from composite.compiler.tvm.passes.rewriting import rewritten

if TYPE_CHECKING:
    from composite.compiler.tvm.tir.block import Block

_STRICT = ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Neg", "Log", "Reciprocal")
"""Ops whose result is NaN where an operand is."""
_QUOTIENTS = ("RealDiv", "Div")


@dataclass(frozen=True)
class _Row:
    """Rows less the largest number of each.

    Attributes:
        top: That number.
        axes: What it was taken over.
        shape: Of a value a row beside the elements: those axes are 1.
        difference: The numbers less that number.
    """

    top: Tensor
    axes: tuple[int, ...]
    shape: Shape
    difference: Tensor


def recognize_softmax(function: Function) -> Function:
    """Return the function with cheaper exponentials, maxima and quotients."""
    order = topological(function.outputs)
    rows = [row for t in order if (row := _row(t)) is not None]
    if not rows:
        return function
    readers = users(order)
    powers: set[Tensor] = set()
    shares: set[Tensor] = set()
    passing: set[Tensor] = set()
    for row in rows:
        own = [t for t in readers.get(row.difference, ()) if _op(t) == "Exp"]
        totals = {t for power in own for t in readers.get(power, ()) if _is_total(t, row)}
        powers.update(own)
        shares.update(t for power in own for t in readers.get(power, ()) if _is_share(t, row))
        if _hides_nan(row, {row.difference, *own}, totals, readers, function):
            passing.add(row.top)

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        again = rebuilt(tensor, made)
        if tensor in powers:
            return _exponential(again)
        if tensor in passing:
            return _passing_nan(again)
        return _product(again) if tensor in shares else again

    return rewritten(function, rule)


def _op(tensor: Tensor) -> str:
    return tensor.node.op if isinstance(tensor.node, Pointwise) else ""


def _unreshaped(tensor: Tensor) -> Tensor:
    return tensor.node.operand if isinstance(tensor.node, Reshape) else tensor


def _row(tensor: Tensor) -> _Row | None:
    """Return the rows that a tensor is the difference of; None for any other tensor."""
    if _op(tensor) != "Sub" or "float" not in tensor.dtype:
        return None
    x, kept = tensor.node.operands
    top = _unreshaped(kept)
    if not isinstance(top.node, Reduce) or top.node.combine.name != "Max":
        return None
    axes = top.node.axes
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
    return _Row(top, axes, shape, tensor) if top.node.operand is x and kept.shape == shape else None


def _is_total(tensor: Tensor, row: _Row) -> bool:
    """Return whether what reads an exponential is the sum of a row."""
    node = tensor.node
    return isinstance(node, Reduce) and node.combine.name == "Sum" and node.axes == row.axes


def _is_share(tensor: Tensor, row: _Row) -> bool:
    """Return whether what reads an exponential divides it by the sum of its row."""
    if _op(tensor) not in _QUOTIENTS:
        return False
    power, divisor = tensor.node.operands
    total = _unreshaped(divisor)
    own = divisor.shape == row.shape and _is_total(total, row)
    return own and total.node.operands == (power,)


def _hides_nan(
    row: _Row,
    elements: set[Tensor],
    totals: set[Tensor],
    readers: Mapping[Tensor, list[Tensor]],
    function: Function,
) -> bool:
    """Return whether all that is made of a row's elements is NaN where its sum is."""
    sums = _made_of_totals(row, totals, readers)

    def is_hidden(reader: Tensor) -> bool:
        operands = reader.node.operands
        beside = any(t in sums and t.shape == row.shape for t in operands)
        return reader in elements or reader in totals or (_op(reader) in _STRICT and beside)

    kept = [t for t in readers[row.top] if isinstance(t.node, Reshape)]
    tops = {row.top, *kept}
    if not elements.isdisjoint(function.outputs) or not tops.isdisjoint(function.outputs):
        return False
    direct = [t for top in tops for t in readers.get(top, ()) if t not in tops]
    return all(t is row.difference for t in direct) and all(
        is_hidden(reader) for t in elements for reader in readers.get(t, ())
    )


def _made_of_totals(
    row: _Row, totals: set[Tensor], readers: Mapping[Tensor, list[Tensor]]
) -> set[Tensor]:
    """Return the values of a row, and of no other, that are NaN where its sum is."""
    made, pending = set(totals), list(totals)
    while pending:
        tensor = pending.pop()
        for reader in readers.get(tensor, ()):
            strict = _op(reader) in _STRICT and reader.shape == tensor.shape
            kept = isinstance(reader.node, Reshape) and reader.shape == row.shape
            if (strict or kept) and reader not in made:
                made.add(reader)
                pending.append(reader)
    return made


def _exponential(tensor: Tensor) -> Tensor:
    def body(block: Block, x: Expr) -> Expr:
        from composite.compiler.tvm.math.exponential import exp_of_difference

        return exp_of_difference(block, x)

    operands = tensor.node.operands
    return replace(tensor, node=pointwise("Exp", body, operands, tensor.dtype, cost=14).node)


def _passing_nan(tensor: Tensor) -> Tensor:
    def most(_: Block, a: Expr, b: Expr) -> Expr:
        from composite.compiler.tvm.math.numeric import choose

        return choose(a > b, a, b)

    top = tensor.node
    if not isinstance(top, Reduce):
        return tensor
    return replace(tensor, node=replace(top, combine=replace(top.combine, apply=most)))


def _product(tensor: Tensor) -> Tensor:
    def inverse(_: Block, total: Expr) -> Expr:
        from composite.compiler.tvm.math.numeric import like

        return like(1.0, total) / total

    power, total = tensor.node.operands
    part = pointwise("Reciprocal", inverse, (total,), total.dtype, cost=6)
    share = pointwise("Mul", lambda _, e, one: e * one, (power, part), tensor.dtype)
    return replace(tensor, node=share.node)
