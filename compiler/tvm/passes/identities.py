"""Replace compositions of elementary functions by one function, no less exact and cheaper.

``tanh(softplus(x))``, of which Mish is made, takes a logarithm that its tanh undoes. ``e^(-x²)``,
the slope of erf and erfc, is computed as erfc computes it: without the rounding of x², and once
where an erfc of x is beside it, as in a GELU and its slope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from composite.compiler.tvm.ir.graph import Function, pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import rebuilt
from composite.compiler.tvm.passes.rewriting import rewritten

if TYPE_CHECKING:
    from composite.compiler.tvm.tir.block import Block


def _tanh_of_softplus(block: Block, x: Expr) -> Expr:
    from composite.compiler.tvm.math.elementary import tanh_of_softplus

    return tanh_of_softplus(block, x)


def _exp_of_minus_square(block: Block, x: Expr) -> Expr:
    from composite.compiler.tvm.math.elementary import exp_of_minus_square

    return exp_of_minus_square(block, x)


_COMPOSITIONS: dict[tuple[str, ...], tuple[Body, int]] = {
    ("Tanh", "Softplus"): (_tanh_of_softplus, 30),
    ("Exp", "Neg", "Square"): (_exp_of_minus_square, 19),
}
"""By the ops, the outermost first: the body of all, and its cost."""


def compose_elementary(function: Function) -> Function:
    """Return the function with one op for each composition that is known."""

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        return _composed(rebuilt(tensor, made))

    return rewritten(function, rule)


def _composed(tensor: Tensor) -> Tensor:
    for ops, (body, cost) in _COMPOSITIONS.items():
        inner = _argument(tensor, ops)
        if inner is not None:
            name = "(".join(ops) + ")" * (len(ops) - 1)
            made = pointwise(name, body, (inner,), tensor.dtype, cost=cost)
            return replace(tensor, node=made.node)
    return tensor


def _argument(tensor: Tensor, ops: Sequence[str]) -> Tensor | None:
    """Return the x of ``f(g(x))`` for the ops f and g; None if the tensor is none such."""
    for op in ops:
        node = tensor.node
        if not isinstance(node, Pointwise) or node.op != op or len(node.operands) != 1:
            return None
        (tensor,) = node.operands
    return tensor
