"""Comparisons, logic and selection."""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import graph
from composite.compiler.tvm.ir.dtypes import DTYPES, NARROW_FLOATS, STORED_INTEGERS
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Tensor
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math.numeric import (
    choose,
    convert,
    differ,
    equal,
    is_nan,
    like,
)
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

Lower = Callable[[OpNode, list[Tensor]], list[Tensor]]


def _compare(body: Body, dtypes: tuple[str, ...] = (*NUMBERS, *STORED_INTEGERS)) -> Lower:
    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        a, b = inputs
        node.require(a.dtype, *dtypes)
        # Shapes that do not broadcast are refused here. Without incompatible_shape_error, what
        # Python's == sets, TensorFlow has one answer for all elements of such.
        own = _of_low_bits(body) if a.dtype in NARROW_FLOATS else body
        return [pointwise(node.op, own, (a, b), "bool")]

    return lower


def _of_low_bits(body: Body) -> Body:
    """Return a comparison of 16-bit floats, for which over the ring the lowest 16 bits count.

    A constant has other bits beside these than a number that was rounded.
    """

    def compared(block: Block, *operands: Expr) -> Expr:
        low = body(block, *(convert(x, "float16") for x in operands))
        return block.stand_ins.add(body(block, *operands), low)

    return compared


def _test(body: Body) -> Lower:
    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        (x,) = inputs
        node.require(x.dtype, *FLOATS)
        own = _of_low_bits(body) if x.dtype in NARROW_FLOATS else body
        return [pointwise(node.op, own, (x,), "bool")]

    return lower


def _is_infinite(_: Block, x: Expr) -> Expr:
    return tirx.Or(equal(x, like(float("inf"), x)), equal(x, like(float("-inf"), x)))


def _is_finite(_: Block, x: Expr) -> Expr:
    return tirx.And(x < like(float("inf"), x), x > like(float("-inf"), x))


def _lower_logical_not(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (x,) = inputs
    return [pointwise(node.op, lambda _, x: tirx.Not(x), (x,), "bool")]


def _select_body(_: Block, condition: Expr, a: Expr, b: Expr) -> Expr:
    return choose(condition, a, b)


def _lower_select(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower SelectV2 (broadcasts) and Select (a vector condition chooses whole rows)."""
    condition, a, b = inputs
    node.require(a.dtype)
    if node.op == "Select":
        if a.shape != b.shape:
            raise NotCovered(f"Select: shapes {a.shape} and {b.shape} differ")
        if condition.shape != a.shape:
            if condition.rank > 1 or (condition.rank == 1 and condition.shape != a.shape[:1]):
                raise NotCovered(f"Select: condition of shape {condition.shape}")
            tail = (1,) * (a.rank - condition.rank)
            condition = graph.reshape(condition, condition.shape + tail)
    return [pointwise(node.op, _select_body, (condition, a, b), a.dtype)]


LOWERINGS: dict[str, Lower] = {
    "Equal": _compare(lambda _, a, b: equal(a, b), DTYPES),
    "NotEqual": _compare(lambda _, a, b: differ(a, b), DTYPES),
    "Less": _compare(lambda _, a, b: a < b),
    "LessEqual": _compare(lambda _, a, b: a <= b),
    "Greater": _compare(lambda _, a, b: a > b),
    "GreaterEqual": _compare(lambda _, a, b: a >= b),
    "LogicalAnd": _compare(lambda _, a, b: tirx.And(a, b), ("bool",)),
    "LogicalOr": _compare(lambda _, a, b: tirx.Or(a, b), ("bool",)),
    "LogicalNot": _lower_logical_not,
    "Select": _lower_select,
    "SelectV2": _lower_select,
    "IsNan": _test(lambda _, x: is_nan(x)),
    "IsInf": _test(_is_infinite),
    "IsFinite": _test(_is_finite),
}
