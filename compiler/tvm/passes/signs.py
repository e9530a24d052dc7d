"""Which tensors are never below zero, however their elements are rounded.

Not a pass: :mod:`.rounding` asks. What is not found may still be positive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.tensor import Constant, Node, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import topological

# fmt: off
_ALWAYS = frozenset({
    "Abs", "Exp", "Relu", "Relu6", "Rsqrt", "Sigmoid", "Softplus", "Sqrt", "Square",
    "SquaredDifference",
})
# fmt: on
_IF_ALL_ARE = frozenset(
    {"Add", "AddN", "AddV2", "Cast", "Div", "Mean", "Minimum", "Mul", "RealDiv", "Rounded"}
)


def never_negative(
    outputs: Iterable[Tensor], captured: Mapping[Tensor, Tensor] = MappingProxyType({})
) -> set[Tensor]:
    """Return those tensors, of all that the outputs are made of, that are proven to be so.

    NaN counts as none below zero. ``captured`` has, for leaves of loops, the tensors of outside.
    """

    def made_of(tensor: Tensor) -> Sequence[Tensor]:
        return (captured[tensor],) if tensor in captured else tensor.node.operands

    found: set[Tensor] = set()
    for tensor in topological(outputs, made_of):
        if captured.get(tensor) in found or _is_never_negative(tensor.node, found):
            found.add(tensor)
    return found


def _is_never_negative(node: Node, known: set[Tensor]) -> bool:
    if isinstance(node, Constant):
        return node.value.dtype != object and not np.any(node.value < 0)
    if isinstance(node, Pointwise):
        if node.op in _ALWAYS:
            return True
        if node.op == "Mul" and len(set(node.operands)) == 1:  # x * x
            return True
        if node.op == "Maximum":
            return any(operand in known for operand in node.operands)
        return node.op in _IF_ALL_ARE and known.issuperset(node.operands)
    if isinstance(node, Reduce) or node.is_strided_view:
        return known.issuperset(node.operands)
    return False
