"""TensorFlow's If and Case: all branches are computed, and a tensor selects one of the results.

Only where no branch can fail: the one that is not taken must not stop the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.lists import Among, KnownRows, Missing, Rest, SetRow, Unset
from composite.compiler.tvm.ir.loop import Loop
from composite.compiler.tvm.ir.tensor import Constant, Expr, Tensor
from composite.compiler.tvm.ir.views import Check
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.lower.static import as_known
from composite.compiler.tvm.math.numeric import choose, differ, equal, like
from composite.compiler.tvm.tir.block import Block

Read = Callable[..., list[Tensor]]
"""Reads a function of the library: its name, arguments, no counts, minimums to note."""


def lower_branches(
    node: Any,
    inputs: list[Tensor],
    read: Read,
    functions: Mapping[str, Any],
    minimums: dict[str, int],
) -> list[Tensor]:
    """Return the results of an If or a Case node.

    Raises:
        NotCovered: If a branch can fail, or the branches have results of different shapes.
    """
    chooser, *operands = inputs
    names = _names(node)
    missing = [name for name in names if name not in functions]
    if missing:
        raise NotCovered(f"function {missing[0]} is not in the library")
    if chooser.shape:
        raise NotCovered(f"{node.op}: a choice by a tensor of shape {chooser.shape}")
    known = _known(node.op, chooser, len(names))
    if known is not None:
        return read(names[known], operands, {}, minimums)
    results = [read(name, operands, {}, minimums) for name in names]
    _refuse_failures(node.op, results, operands)
    return [_selected(node.op, chooser, one) for one in zip(*results, strict=True)]


def _names(node: Any) -> list[str]:
    """Return the functions of the branches, by the number that chooses them: 0 is false."""
    if "branches" in node.attr:
        return [f.name for f in node.attr["branches"].list.func]
    return [node.attr[key].func.name for key in ("else_branch", "then_branch")]


def _is_case(op: str) -> bool:
    return op.endswith("Case")


def _known(op: str, chooser: Tensor, count: int) -> int | None:
    """Return the number of the branch that is taken, where that is known now."""
    if not isinstance(chooser.node, Constant):
        return None
    value = chooser.node.value.item()
    if not _is_case(op):
        return int(bool(value))
    return value if 0 <= value < count else count - 1


def _refuse_failures(
    op: str, results: Sequence[Sequence[Tensor]], operands: Sequence[Tensor]
) -> None:
    before = set(topological(operands))
    for tensor in topological([t for made in results for t in made]):
        if tensor not in before and isinstance(tensor.node, Check):
            raise NotCovered(f"{op}: an index or a divisor that only one branch may have")
        if tensor not in before and isinstance(tensor.node, Loop):
            raise NotCovered(f"{op}: a loop in a branch")


def _selected(op: str, chooser: Tensor, alternatives: Sequence[Tensor]) -> Tensor:
    """Return the alternative that is chosen; of a Case, the last one where there is no such."""
    # A value that only one branch leaves is asked for by no other one's gradient.
    present = [t for t in alternatives if not isinstance(t.node, Missing)]
    last = (present or alternatives)[-1]
    *others, last = (t if t in present else last for t in alternatives)
    if all(t is last for t in others):
        return last
    for other in (*others, last):
        if isinstance(other.node, Among | KnownRows | Rest | SetRow | Unset):
            raise NotCovered(f"{op}: a list of tensors that a branch makes")
        if other.shape != last.shape:
            raise NotCovered(
                f"{op}: branches that make tensors of shapes {other.shape} and {last.shape}"
            )
    result = as_known(last)
    for number, other in reversed(list(enumerate(others))):
        result = pointwise(
            op, _select(number, _is_case(op)), (chooser, as_known(other), result), last.dtype
        )
    return result


def _select(number: int, is_case: bool) -> Callable[..., Expr]:
    """Return the body that takes its first alternative where it has that number."""

    def body(_: Block, chooser: Expr, one: Expr, other: Expr) -> Expr:
        if is_case:
            return choose(equal(chooser, like(number, chooser)), one, other)
        return choose(differ(chooser, like(0, chooser)), other, one)

    return body
