"""Batch normalization and its gradient, over the channels of ``[N, H, W, C]``."""

from __future__ import annotations

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.reduction import ADD, reduce_over
from composite.compiler.tvm.lower.unary import FLOATS
from composite.compiler.tvm.math import elementary as math
from composite.compiler.tvm.math.by_name import by_name
from composite.compiler.tvm.math.numeric import like
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_AXES = (0, 1, 2)


def _lower_batch_norm(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower to y, the means and variances to keep, those of the batch, and an empty reserve.

    Without training TF leaves the batch's statistics unset; here they are zero.
    """
    x, scale, offset, mean, variance = inputs
    _require(node, x, scale)
    if not node.flag("is_training", True):
        y = _normalized(node, x, (scale, offset), (mean, variance))
        unset = pointwise("Unset", lambda _, v: like(0.0, v), (scale,), scale.dtype, cost=0)
        return [y, mean, variance, unset, unset, _nothing(scale.dtype)]
    if node.real("exponential_avg_factor", 1.0) != 1.0:
        raise NotCovered(f"{node.op}: exponential_avg_factor is not 1")
    count = _count(x)
    batch_mean = _over(scale.dtype, _sum(x), count)
    difference = pointwise("Sub", lambda _, a, b: a - b, (x, batch_mean), scale.dtype)
    squares = pointwise("Square", lambda _, d: d * d, (difference,), scale.dtype)
    batch_variance = _over(scale.dtype, _sum(squares), count)
    y = _normalized(node, x, (scale, offset), (batch_mean, batch_variance))
    kept = pointwise("Unbiased", unbiased, (batch_variance, count), scale.dtype, cost=8)
    return [y, batch_mean, kept, batch_mean, batch_variance, _nothing(scale.dtype)]


def _lower_gradient(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower to the gradients of x, scale and offset, and two empty reserves.

    What is reserved is the mean and the variance that x was normalized with.
    """
    dy, x, scale, mean, variance, _ = inputs
    _require(node, x, scale)
    dims.broadcast_shapes((dy.shape, x.shape), node.op)
    root = _inverse_root(node, variance)
    offset_gradient = _sum(_in(scale.dtype, dy))
    product = pointwise(
        "Product", lambda _, a, b, m: a * (b - m), (dy, x, mean), scale.dtype, cost=2
    )
    scale_gradient = pointwise("Mul", lambda _, a, b: a * b, (_sum(product), root), scale.dtype)
    factor = pointwise("Mul", lambda _, a, b: a * b, (scale, root), scale.dtype)
    if node.flag("is_training", True):
        count = _count(x)
        mean_gradient = _over(scale.dtype, offset_gradient, count)
        along = pointwise("Mul", lambda _, a, b: a * b, (scale_gradient, root), scale.dtype)
        along = _over(scale.dtype, along, count)
        operands = (dy, x, mean, mean_gradient, along, factor)
        x_gradient = pointwise("Gradient", _centered, operands, x.dtype, cost=5)
    else:
        x_gradient = pointwise("Mul", lambda _, a, b: a * b, (dy, factor), x.dtype)
    empty = graph.constant(np.zeros(0, np.float32), scale.dtype)
    return [x_gradient, scale_gradient, offset_gradient, empty, empty]


def _require(node: OpNode, x: Tensor, scale: Tensor) -> None:
    node.require(x.dtype, *FLOATS)
    node.require(scale.dtype, *FLOATS)
    if node.text("data_format", "NHWC") != "NHWC" or x.rank != 4:
        raise NotCovered(f"{node.op}: data_format {node.text('data_format', 'NHWC')}")


def _count(x: Tensor) -> Tensor:
    """Return the number of elements of a channel, which may be a size."""
    count = np.asarray(dims.product(x.shape[:3]), dtype=object)
    return graph.constant(count, compute_dtype(x.dtype))


def _in(dtype: str, x: Tensor) -> Tensor:
    """Return a tensor, of a dtype that has none of its elements rounded, in that dtype."""
    return x if x.dtype == dtype else pointwise("Cast", lambda _, v: v, (x,), dtype, cost=0)


def _sum(x: Tensor) -> Tensor:
    return reduce_over(ADD, x, _AXES, keep=False)


def _over(dtype: str, total: Tensor, count: Tensor) -> Tensor:
    return pointwise("Over", lambda _, a, b: a / b, (total, count), dtype, cost=6)


def _inverse_root(node: OpNode, variance: Tensor) -> Tensor:
    epsilon = node.real("epsilon", 1e-4)

    def body(block: Block, v: Expr) -> Expr:
        return math.rsqrt(block, block.let(v + like(epsilon, v)))

    return pointwise("Rsqrt", body, (variance,), variance.dtype, cost=13)


def _normalized(
    node: OpNode, x: Tensor, parameters: tuple[Tensor, Tensor], moments: tuple[Tensor, Tensor]
) -> Tensor:
    (scale, offset), (mean, variance) = parameters, moments
    root = _inverse_root(node, variance)
    factor = pointwise("Mul", lambda _, a, b: a * b, (scale, root), scale.dtype)
    return pointwise(node.op, _affine, (x, mean, factor, offset), x.dtype, cost=3)


def _affine(_: Block, x: Expr, mean: Expr, factor: Expr, offset: Expr) -> Expr:
    return (x - mean) * factor + offset


def _centered(  # noqa: PLR0913, PLR0917 - one for each operand
    _: Block, dy: Expr, x: Expr, mean: Expr, mean_gradient: Expr, along: Expr, factor: Expr
) -> Expr:
    return (dy - mean_gradient - (x - mean) * along) * factor


@by_name
def unbiased(_: Block, variance: Expr, count: Expr) -> Expr:
    """Return the unbiased estimate of the variance."""
    from tvm import tirx

    return variance * (count / tirx.max(count - like(1.0, count), like(1.0, count)))


def _nothing(dtype: str) -> Tensor:
    return graph.constant(np.zeros((), np.float32), dtype)


LOWERINGS = {
    "FusedBatchNormV3": _lower_batch_norm,
    "FusedBatchNormGradV3": _lower_gradient,
}
