"""Have products of integers that were widened to int32 take them as they are stored.

What a body writes as ``cast(x, int32) - zero_point`` would be an array of four times the size. The
product takes x itself then, and its zero point beside it. Not for convolutions channel by channel,
nor for zero points that the call decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from composite.compiler.tvm.ir.anchors import Convolution, MatMul
from composite.compiler.tvm.ir.dtypes import fits
from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.tensor import Constant, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import over, rewrite

_NARROW = ("int8", "uint8", "int16")
_WIDE = "int32"


class _Narrow(NamedTuple):
    """A tensor whose elements are those of a stored one, less a zero point."""

    tensor: Tensor
    zero: int = 0


def narrow_products(function: Function) -> Function:
    """Return the function with products of stored integers."""

    def rule(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor | None:
        node = tensor.node
        if tensor.dtype != _WIDE or not isinstance(node, MatMul | Convolution):
            return None
        if isinstance(node, Convolution) and (node.transposed or node.filter.shape[2] == 1):
            return None
        found = [_narrow(made[operand]) for operand in node.operands]
        if not all(one is not None and fits(one.tensor.dtype, one.zero, "int16") for one in found):
            return None
        a, b = (one for one in found if one is not None)
        narrow = dict(zip(node.operands, (a.tensor, b.tensor), strict=True))
        return replace(tensor, node=over(replace(node, zeros=(a.zero, b.zero)), narrow))

    outputs = function.outputs
    instead = rewrite(outputs, rule)
    if all(instead[t] is t for t in outputs):
        return function
    return replace(function, outputs=tuple(instead[t] for t in outputs))


def _narrow(tensor: Tensor) -> _Narrow | None:
    """Return what a tensor was widened from, through views of it; None if it was not."""
    node = tensor.node
    if node.is_strided_view:
        (operand,) = node.operands
        below = _narrow(operand)
        if below is None:
            return None
        view = over(node, {operand: below.tensor})
        return below._replace(tensor=replace(tensor, dtype=below.tensor.dtype, node=view))
    if not isinstance(node, Pointwise):
        return None
    if node.op == "Cast":
        (operand,) = node.operands
        return _Narrow(operand) if operand.dtype in _NARROW else None
    if node.op not in ("Sub", "Add", "AddV2"):
        return None
    first, second = node.operands
    if node.op != "Sub" and _one_number(second) is None:
        first, second = second, first
    below, number = _narrow(first), _one_number(second)
    if below is None or number is None or first.shape != tensor.shape:
        return None
    return below._replace(zero=below.zero + (number if node.op == "Sub" else -number))


def _one_number(tensor: Tensor) -> int | None:
    """Return the number that all elements of a tensor are; None if the call decides it."""
    if not isinstance(tensor.node, Constant) or tensor.node.value.dtype == object:
        return None
    value = tensor.node.value
    return int(value.flat[0]) if value.size and np.all(value == value.flat[0]) else None
