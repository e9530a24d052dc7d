"""Sums, maxima and minima over dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import dims, graph
from ..errors import NotCovered
from ..graph import Combine, Expr, Reduce, Tensor, pointwise
from ..node import OpNode
from ..numeric import add, larger, smaller
from .static import known_ints
from .unary import FLOATS, NUMBERS

ADD = Combine("Sum", lambda _: 0, add)
MAXIMUM = Combine("Max", lambda dtype: _limit(dtype, "min"), larger)
MINIMUM = Combine("Min", lambda dtype: _limit(dtype, "max"), smaller)


def _limit(dtype: str, which: str) -> float:
    """Return the least or greatest value of a compute dtype."""
    if dtype.startswith("float"):
        return -math.inf if which == "min" else math.inf
    return int(getattr(np.iinfo(dtype), which))


def reduce_over(combine: Combine, tensor: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Return the reduction over the axes (not negative, sorted), which stay as 1 if ``keep``."""
    if not axes:
        return tensor
    rest = tuple(d for i, d in enumerate(tensor.shape) if i not in axes)
    total = Tensor(rest, tensor.dtype, Reduce(tensor, axes, combine))
    kept = tuple(1 if i in axes else d for i, d in enumerate(tensor.shape))
    return graph.reshape(total, kept) if keep else total


def _axes(node: OpNode, tensor: Tensor, axis: Tensor) -> tuple[int, ...]:
    axes = known_ints(node, axis, "reduction axes")
    if any(not -tensor.rank <= a < tensor.rank for a in axes):
        raise NotCovered(f"{node.op}: axes {axes} of a tensor of rank {tensor.rank}")
    return tuple(sorted({a % tensor.rank for a in axes}))


def _reduction(combine: Combine) -> Callable[[OpNode, list[Tensor]], list[Tensor]]:
    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        tensor, axis = inputs
        node.require(tensor.dtype, *NUMBERS)
        axes = _axes(node, tensor, axis)
        return [reduce_over(combine, tensor, axes, node.flag("keep_dims"))]

    return lower


def _lower_mean(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    tensor, axis = inputs
    node.require(tensor.dtype, *FLOATS)
    axes = _axes(node, tensor, axis)
    count = dims.product(tensor.shape[a] for a in axes)
    total = reduce_over(ADD, tensor, axes, node.flag("keep_dims"))
    if not isinstance(count, int):
        raise NotCovered(f"{node.op}: over a dimension of unknown size")

    def divide(_: graph.Expr, x: Expr) -> Expr:
        from ..numeric import like

        # 0 / 0, which TVM will not fold, is NaN.
        return x / like(float(count), x) if count else like(math.nan, x)

    return [pointwise(node.op, divide, (total,), tensor.dtype, cost=6)]


def _lower_bias_add_grad(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Sum over all but the channels: the last dimension, or dimension 1 for NCHW."""
    (tensor,) = inputs
    node.require(tensor.dtype, *NUMBERS)
    channel = 1 if node.text("data_format", "NHWC") == "NCHW" else tensor.rank - 1
    axes = tuple(i for i in range(tensor.rank) if i != channel)
    return [reduce_over(ADD, tensor, axes, keep=False)]


LOWERINGS = {
    **{combine.name: _reduction(combine) for combine in (ADD, MAXIMUM, MINIMUM)},
    "Mean": _lower_mean,
    "BiasAddGrad": _lower_bias_add_grad,
}
