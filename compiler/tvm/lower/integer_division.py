"""Division of integers, and its rest: towards zero, and towards minus infinity.

TensorFlow reports a division by zero as an error. A kernel fails at one, so that the expansion runs
and reports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import tirx

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import views
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Constant, Expr, Tensor
from composite.compiler.tvm.math.numeric import (
    choose,
    convert,
    differ,
    element,
    equal,
    like,
    neg,
    sub,
)
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

INTEGERS = ("int32", "int64")


def integer_division(node: OpNode, inputs: list[Tensor], known: np.ndarray | None) -> list[Tensor]:
    """Return what the op makes of integers; ``known`` is its result if that can be told now."""
    a, b = inputs
    if known is not None:
        return [Tensor(tuple(known.shape), a.dtype, Constant(known), known)]
    body = _BODIES[node.op]
    if isinstance(b.node, Constant) and all(isinstance(v, _NUMBER) for v in b.node.value.flat):
        if np.any(b.node.value == 0):
            raise NotCovered(f"{node.op}: division by zero (TF's op reports it)")
        return [pointwise(node.op, body, (a, b), a.dtype, cost=_COST)]
    zero = views.checked(pointwise("IsZero", _is_zero, (b,), b.dtype), 1)
    with_check = lambda block, x, y, _: body(block, x, y)  # noqa: E731
    return [pointwise(node.op, with_check, (a, b, zero), a.dtype, cost=_COST)]


_NUMBER = int | np.integer
_COST = 20


def _is_zero(_: Block, b: Expr) -> Expr:
    return choose(equal(b, like(0, b)), like(1, b), like(0, b))


def _divisor(block: Block, b: Expr) -> Expr:
    """Return a divisor that the machine takes: by 0 it divides nothing, nor the least by -1."""
    below = choose(b < like(-1, b), b, like(1, b))
    return block.let(choose(b > like(0, b), b, below))


def _truncated(block: Block, a: Expr, b: Expr) -> Expr:
    """Return a / b without its fraction; the least integer divided by -1 wraps to itself."""
    quotient = block.let(tirx.truncdiv(a, _divisor(block, b)))
    return choose(equal(b, like(-1, b)), neg(block, a), quotient)


def _rest(block: Block, a: Expr, b: Expr) -> Expr:
    """Return what the division leaves, of the sign of a."""
    return block.let(tirx.truncmod(a, _divisor(block, b)))


def _moves(block: Block, rest: Expr, b: Expr) -> Expr:
    """Return where rounding down gives another quotient than leaving out the fraction."""
    zero = like(0, b)
    return block.let(tirx.And(differ(rest, zero), differ(rest < zero, b < zero)))


def _floor(block: Block, a: Expr, b: Expr) -> Expr:
    quotient = block.let(_truncated(block, a, b))
    moves = _moves(block, _rest(block, a, b), b)
    return sub(block, quotient, convert(moves, element(a)))


def _floor_rest(block: Block, a: Expr, b: Expr) -> Expr:
    """Return what is left after rounding down, of the sign of b."""
    rest = _rest(block, a, b)
    # Of different signs, so that the sum does not overflow.
    return choose(_moves(block, rest, b), rest + b, rest)


_BODIES: dict[str, Callable[[Block, Any, Any], Any]] = {
    "Div": _truncated,
    "TruncateDiv": _truncated,
    "Mod": _rest,
    "TruncateMod": _rest,
    "FloorDiv": _floor,
    "FloorMod": _floor_rest,
}
