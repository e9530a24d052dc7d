"""Replace compositions of elementary functions by one function, no less exact and cheaper.

``tanh(softplus(x))``, of which Mish is made, takes a logarithm that its tanh undoes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from composite.compiler.tvm.ir.graph import Function, pointwise
from composite.compiler.tvm.ir.tensor import Body, Expr, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import rebuilt
from composite.compiler.tvm.passes.rewriting import rewritten

if TYPE_CHECKING:
    from composite.compiler.tvm.codegen.block import Block


def _tanh_of_softplus(block: Block, x: Expr) -> Expr:
    from composite.compiler.tvm.math.elementary import tanh_of_softplus

    return tanh_of_softplus(block, x)


_COMPOSITIONS: dict[tuple[str, str], tuple[Body, int]] = {
    ("Tanh", "Softplus"): (_tanh_of_softplus, 30),
}
"""By the outer and the inner op: the body of both, and its cost."""


def compose_elementary(function: Function) -> Function:
    """Return the function with one op for each composition that is known."""

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
        return _composed(rebuilt(tensor, made))

    return rewritten(function, rule)


def _composed(tensor: Tensor) -> Tensor:
    outer = tensor.node
    if not isinstance(outer, Pointwise) or len(outer.operands) != 1:
        return tensor
    inner = outer.operands[0].node
    if not isinstance(inner, Pointwise) or (outer.op, inner.op) not in _COMPOSITIONS:
        return tensor
    body, cost = _COMPOSITIONS[outer.op, inner.op]
    name = f"{outer.op}({inner.op})"
    return replace(tensor, node=pointwise(name, body, inner.operands, tensor.dtype, cost=cost).node)
