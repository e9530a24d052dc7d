"""Where rounding to 16 bits makes a large difference: sums that absorb an operand, and multiples.

Not a pass: :mod:`.rounding` asks.

A float16 of -65504 absorbs any number below 16 that is added to it, which is how scores are masked:
a row of masked scores is a row of equal ones, and one that was masked twice has infinities. In
float32 the differences are left, and what takes the largest of the row from them sees those. So it
is with all differences of numbers that are made of one another.

Numbers times a constant overflow float16 where float32 has room. So do squares, and products of two
tensors. Those keep the range of float32: to round them would double the time of a norm, for results
that are 0 or NaN.
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
    """Return the sums from which something is taken that is made of the same numbers."""
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
    """Return the products with a constant that may leave the range of their float16.

    ``tensors``: operands come first.
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
    """Return whether it is a product with a constant."""
    node = tensor.node
    if not isinstance(node, Pointwise) or node.op != "Mul":
        return False
    return any(isinstance(t.node, Constant) for t in node.operands)


def _is_shift(tensor: Tensor) -> bool:
    """Return whether it is a sum with one small number, which absorbs nothing of all others."""
    others = [t.node for t in tensor.node.operands if isinstance(t.node, Constant)]
    return any(node.value.size == 1 and _largest(node) <= 1 for node in others)


def _beside(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return what a tensor is made of, up to products of matrices and loops."""
    node = tensor.node
    if isinstance(node, Loop | LoopResult) or (node.is_anchor and not isinstance(node, Reduce)):
        return ()
    return node.operands


def _bound(tensor: Tensor, most: dict[Tensor, float]) -> float:
    """Return what no element is larger than, if no operand is larger than its own bound."""
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
    """Return the largest magnitude of the elements; that of all numbers if they are sizes."""
    if node.value.dtype == object:
        return _MOST
    return float(np.max(np.abs(node.value.astype(np.float64)), initial=0.0))
