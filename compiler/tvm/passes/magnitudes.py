"""Sums and products whose rounding to 16 bits changes results by much. Used by :mod:`.rounding`.

A float16 sum with -65504 absorbs operands smaller than 16. Additive masks rely on this: all masked
scores of a row become equal, and scores that are masked twice become infinite. A float32 sum keeps
the differences between the scores, and a softmax, which subtracts the maximum of the row, returns
them. The same holds for every difference of two values that share an operand.

A product with a constant may overflow float16 but not float32. Such products are rounded. Squares
and products of two tensors are not: they keep the range of float32, because rounding them doubles
the time of a norm and only changes results that are 0 or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from composite.compiler.tvm.ir.anchors import Reduce
from composite.compiler.tvm.ir.loop import Loop, LoopResult
from composite.compiler.tvm.ir.tensor import Constant, Pointwise, Tensor
from composite.compiler.tvm.ir.walk import reachable

_SUMS = frozenset({"Add", "AddN", "AddV2", "BiasAdd", "Sub"})
_DIFFERENCES = frozenset({"SquaredDifference", "Sub"})

_MOST = 65504.0  # the largest float16
_OVERFLOWS = 65520.0  # rounds to infinity
_AT_MOST_1 = frozenset({"Cos", "Erf", "Sigmoid", "Sign", "Sin", "Softmax", "Tanh"})
_NO_LARGER = frozenset({"Abs", "Identity", "Maximum", "Minimum", "Neg", "Relu", "Rounded"})


def absorbing_sums(tensors: Iterable[Tensor]) -> set[Tensor]:
    """Return the sums on one side of a difference whose other side shares an operand."""
    found: set[Tensor] = set()
    for tensor in tensors:
        node = tensor.node
        if not isinstance(node, Pointwise) or node.op not in _DIFFERENCES:
            continue
        if len(node.operands) != 2 or "float" not in tensor.dtype:
            continue
        a, b = (set(reachable([operand], _beside)) for operand in node.operands)
        if any(not isinstance(one.node, Constant) for one in a & b):
            found |= {one for one in a | b if _is_sum(one) and not _is_shift(one)}
    return found


def overflowing(tensors: Sequence[Tensor]) -> set[Tensor]:
    """Return the float16 products with a constant that may overflow.

    ``tensors`` is in topological order.
    """
    most: dict[Tensor, float] = {}
    found: set[Tensor] = set()
    for tensor in tensors:
        if tensor.dtype != "float16":
            continue
        bound = _bound(tensor, most)
        if bound >= _OVERFLOWS and _is_multiple(tensor):
            found.add(tensor)
        most[tensor] = min(bound, _MOST)
    return found


def _is_sum(tensor: Tensor) -> bool:
    return isinstance(tensor.node, Pointwise) and tensor.node.op in _SUMS


def _is_multiple(tensor: Tensor) -> bool:
    """Return whether the tensor is a product with a constant."""
    node = tensor.node
    if not isinstance(node, Pointwise) or node.op != "Mul":
        return False
    return any(isinstance(t.node, Constant) for t in node.operands)


def _is_shift(tensor: Tensor) -> bool:
    """Return whether the tensor is a sum with one constant of magnitude 1 or less."""
    others = [t.node for t in tensor.node.operands if isinstance(t.node, Constant)]
    return any(node.value.size == 1 and _largest(node) <= 1 for node in others)


def _beside(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the operands of a tensor; none for matrix products, convolutions and loops."""
    node = tensor.node
    if isinstance(node, Loop | LoopResult) or (node.is_anchor and not isinstance(node, Reduce)):
        return ()
    return node.operands


def _bound(tensor: Tensor, most: dict[Tensor, float]) -> float:
    """Return a bound on the magnitude of the elements, given bounds on the operands."""
    node = tensor.node
    if isinstance(node, Constant):
        return _largest(node)
    operands = [most.get(t, _MOST) for t in node.operands]
    if not isinstance(node, Pointwise):
        return max(operands) if node.is_strided_view else _MOST
    if node.op in _AT_MOST_1:
        return 1.0
    if node.op in _NO_LARGER:
        return max(operands)
    if node.op in _SUMS:
        return sum(operands)
    return math.prod(operands) if node.op == "Mul" else _MOST


def _largest(node: Constant) -> float:
    """Return the largest magnitude of the elements; ``_MOST`` if they are symbolic sizes."""
    if node.value.dtype == object:
        return _MOST
    return float(np.max(np.abs(node.value.astype(np.float64)), initial=0.0))
