"""Sums, products, extremes over dimensions, and where the extremes are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from ml_dtypes import finfo

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import Combine, Reduce
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.static import known_ints, known_tensor
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math.numeric import (
    add,
    choose,
    convert,
    differ,
    element,
    equal,
    larger,
    like,
    mul,
    smaller,
)
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

ADD = Combine("Sum", lambda _: 0, add)
MAXIMUM = Combine("Max", lambda dtype: _limit(dtype, "min"), larger)
MINIMUM = Combine("Min", lambda dtype: _limit(dtype, "max"), smaller)
PRODUCT = Combine("Prod", lambda _: 1, mul)
# Of bools as integers: registers of bools are bytes anyway, and vectors of them are slow.
ALL = Combine("All", lambda _: 1, lambda _, a, b: a & b)
ANY = Combine("Any", lambda _: 0, lambda _, a, b: a | b)


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
        size = known_tensor(count, "int64")
        by_size = lambda _, x, n: x / convert(n, element(x))  # noqa: E731
        return [pointwise(node.op, by_size, (total, size), tensor.dtype, cost=6)]

    def divide(_: Block, x: Expr) -> Expr:
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


def _lower_prod(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Multiply data, or known sizes for the shape arithmetic of a body."""
    tensor, axis = inputs
    if tensor.known is None:
        return _reduction(PRODUCT)(node, inputs)
    value = np.prod(tensor.known, axis=_axes(node, tensor, axis), keepdims=node.flag("keep_dims"))
    return [known_tensor(value, tensor.dtype)]


def _logical(combine: Combine) -> Callable[[OpNode, list[Tensor]], list[Tensor]]:
    def lower(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
        tensor, axis = inputs
        node.require(tensor.dtype, "bool")
        axes = _axes(node, tensor, axis)
        bits = pointwise("Cast", lambda _, x: convert(x, "int32"), (tensor,), "int32")
        total = reduce_over(combine, bits, axes, node.flag("keep_dims"))
        return [pointwise("Cast", lambda _, x: differ(x, like(0, x)), (total,), "bool")]

    return lower


def _lower_l2_loss(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (x,) = inputs
    node.require(x.dtype, *FLOATS)
    squares = pointwise("Square", lambda _, x: x * x, (x,), x.dtype)
    total = reduce_over(ADD, squares, tuple(range(x.rank)), keep=False)
    return [pointwise(node.op, lambda _, x: x * like(0.5, x), (total,), x.dtype)]


def _lower_place_of_extreme(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower ArgMax and ArgMin: the first place of the extreme.

    As in TF, NaN is never one, nor what is no better than the least (largest) finite number; the
    place is 0 if there is nothing else.
    """
    tensor, dimension = inputs
    node.require(tensor.dtype, *NUMBERS)
    if tensor.rank == 0:
        raise NotCovered(f"{node.op}: of a scalar")
    ((axis,), dtype) = _axes(node, tensor, dimension), node.dtype("output_type")
    node.require(dtype, "int32", "int64")
    node.at_least(tensor.shape[axis], 1, f"a dimension of {tensor.shape[axis]}")
    largest = node.op == "ArgMax"
    if tensor.dtype in FLOATS:
        worst = float(finfo(tensor.dtype).min if largest else finfo(tensor.dtype).max)

        def comparable(_: Block, x: Expr) -> Expr:
            limit = like(worst, x)
            return choose(x > limit if largest else x < limit, x, limit)

        tensor = pointwise("Comparable", comparable, (tensor,), tensor.dtype, jumps=True)
    best = reduce_over(MAXIMUM if largest else MINIMUM, tensor, (axis,), keep=True)
    nowhere = int(np.iinfo(dtype).max)

    def place(_: Block, x: Expr, best: Expr, i: Expr) -> Expr:
        return choose(equal(x, best), i, like(nowhere, i))

    places = views.iota(tensor.shape[axis], dtype, tensor.rank, axis)
    found = pointwise(node.op, place, (tensor, best, places), dtype, cost=2)
    return [reduce_over(MINIMUM, found, (axis,), keep=False)]


LOWERINGS = {
    **{combine.name: _reduction(combine) for combine in (ADD, MAXIMUM, MINIMUM)},
    "Mean": _lower_mean,
    "BiasAddGrad": _lower_bias_add_grad,
    "Prod": _lower_prod,
    "All": _logical(ALL),
    "Any": _logical(ANY),
    "L2Loss": _lower_l2_loss,
    "ArgMax": _lower_place_of_extreme,
    "ArgMin": _lower_place_of_extreme,
}
