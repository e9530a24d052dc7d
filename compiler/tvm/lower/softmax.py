"""Softmax over the last dimension, and the losses that are made of it."""

from __future__ import annotations

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import Combine
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.data import broadcast
from composite.compiler.tvm.lower.reduction import ADD, MAXIMUM, reduce_over
from composite.compiler.tvm.lower.unary import FLOATS
from composite.compiler.tvm.math import elementary as math
from composite.compiler.tvm.math.numeric import choose, equal, like
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block


def _larger_number(_: Block, a: Expr, b: Expr) -> Expr:
    return choose(a > b, a, b)


_MOST = Combine(MAXIMUM.name, MAXIMUM.identity, _larger_number)
"""The largest number of a row; a NaN is passed over, for it makes the sum of the row NaN anyway.
That is the machine's own maximum, where one that keeps NaN takes four instructions."""


def _shifted(x: Tensor) -> Tensor:
    """Return the numbers less the largest of their row."""
    most = reduce_over(_MOST, x, (x.rank - 1,), keep=True)
    return pointwise("Sub", lambda _, a, b: a - b, (x, most), x.dtype)


def _exp_and_sum(shifted: Tensor) -> tuple[Tensor, Tensor]:
    power = pointwise("Exp", math.exp_of_difference, (shifted,), shifted.dtype, cost=14)
    return power, reduce_over(ADD, power, (shifted.rank - 1,), keep=True)


def _inverse(total: Tensor) -> Tensor:
    """Return the reciprocal of the sum of a row, which is at least 1, to multiply with."""
    return pointwise("Reciprocal", lambda _, s: like(1.0, s) / s, (total,), total.dtype, cost=6)


def _log_less(block: Block, x: Expr, total: Expr) -> Expr:
    return x - math.log(block, total)


def _lower_softmax(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    (logits,) = inputs
    node.require(logits.dtype, *FLOATS)
    if logits.rank < 1:
        raise NotCovered(f"{node.op}: of a scalar")
    shifted = _shifted(logits)
    power, total = _exp_and_sum(shifted)
    if node.op == "LogSoftmax":
        return [pointwise(node.op, _log_less, (shifted, total), logits.dtype, cost=29)]
    operands = power, _inverse(total)
    return [pointwise(node.op, lambda _, e, part: e * part, operands, logits.dtype)]


def _loss(block: Block, label: Expr, x: Expr, total: Expr) -> Expr:
    return label * (math.log(block, total) - x)


def _log_sum_less(block: Block, x: Expr, total: Expr) -> Expr:
    return math.log(block, total) - x


def _lower_cross_entropy(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Return the loss of each row and its gradient, for labels that are distributions."""
    features, labels = inputs
    node.require(features.dtype, *FLOATS)
    if features.rank != 2 or labels.rank != 2:
        raise NotCovered(f"{node.op}: ranks {features.rank} and {labels.rank}")
    shape = dims.broadcast_shapes((features.shape, labels.shape), node.op)
    features, labels = broadcast(features, shape), broadcast(labels, shape)
    shifted = _shifted(features)
    power, total = _exp_and_sum(shifted)
    losses = pointwise(node.op, _loss, (labels, shifted, total), features.dtype, cost=30)
    backprop = pointwise(
        node.op,
        lambda _, e, part, p: e * part - p,
        (power, _inverse(total), labels),
        features.dtype,
        cost=2,
    )
    return [reduce_over(ADD, losses, (1,), keep=False), backprop]


def _lower_sparse_cross_entropy(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Return the loss of each row and its gradient, for labels that are the index of a class."""
    features, labels = inputs
    node.require(features.dtype, *FLOATS)
    node.require(labels.dtype, "int32", "int64")
    if features.rank != 2 or labels.rank != 1:
        raise NotCovered(f"{node.op}: ranks {features.rank} and {labels.rank}")
    rows: Dim = dims.require_equal(features.shape[0], labels.shape[0], f"{node.op}: rows")
    classes = features.shape[1]
    labels = views.checked(labels, classes)
    shifted = _shifted(features)
    power, total = _exp_and_sum(shifted)
    own = views.gather(shifted, labels, 1, 1)
    sums = graph.reshape(total, (rows,))
    loss = pointwise(node.op, _log_sum_less, (own, sums), features.dtype, cost=29)

    def gradient(_: Block, power: Expr, part: Expr, label: Expr, place: Expr) -> Expr:
        y = power * part
        return choose(equal(label, place), y - like(1.0, y), y)

    places = views.iota(classes, labels.dtype, 2, 1)
    column = graph.reshape(labels, (rows, 1))
    operands = power, _inverse(total), column, places
    backprop = pointwise(node.op, gradient, operands, features.dtype, cost=4)
    return [loss, backprop]


LOWERINGS = {
    "Softmax": _lower_softmax,
    "LogSoftmax": _lower_softmax,
    "SoftmaxCrossEntropyWithLogits": _lower_cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _lower_sparse_cross_entropy,
}
