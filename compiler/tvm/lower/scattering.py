"""Rows combined at indices that are data: segments, and what gradients of gathers are made of."""

from __future__ import annotations

import numpy as np
from ml_dtypes import finfo

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.anchors import Combine, Scatter
from composite.compiler.tvm.ir.dims import Dim, Shape
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.reduction import ADD, PRODUCT
from composite.compiler.tvm.lower.static import as_known, known_dims
from composite.compiler.tvm.lower.unary import FLOATS, NUMBERS
from composite.compiler.tvm.math.numeric import add, choose, like, sub
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block


def _scatter(
    updates: Tensor,
    indices: tuple[Tensor, ...],
    outer: Shape,
    inner: Shape,
    combine: Combine = ADD,
) -> Tensor:
    """Return rows of shape ``inner`` combined at places in ``outer``."""
    width = dims.product(inner)
    rows = graph.reshape(updates, (*indices[0].shape, width))
    result = Tensor((*outer, width), updates.dtype, Scatter(rows, indices, combine))
    return graph.reshape(result, (*outer, *inner))


def _of_extreme(op: str, dtype: str) -> Combine:
    """Return the way to combine of UnsortedSegmentMax and UnsortedSegmentMin.

    As in TF, a segment without rows has the least (largest) finite number, and so has one of which
    all are infinitely less (more); after a NaN, the next row counts again.
    """
    largest = op == "UnsortedSegmentMax"
    kind = finfo(dtype) if dtype in FLOATS else np.iinfo(dtype)
    start = kind.min if largest else kind.max
    identity = float(start) if dtype in FLOATS else int(start)

    def apply(_: Block, before: Expr, row: Expr) -> Expr:
        return choose(before > row if largest else before < row, before, row)

    return Combine(op, lambda _: identity, apply)


def _lower_segments(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower UnsortedSegmentSum and its like: what has a negative number is in no segment."""
    data, segments = inputs[0], as_known(inputs[1])
    node.require(data.dtype, *NUMBERS)
    node.require(segments.dtype, "int32", "int64")
    (count,) = known_dims(node, inputs[2], "num_segments")
    node.at_least(count, 0, f"num_segments of {count}")
    combine = {"UnsortedSegmentSum": ADD, "UnsortedSegmentProd": PRODUCT}.get(node.op)
    for a, b in zip(data.shape, segments.shape, strict=False):
        dims.require_equal(a, b, node.op)

    def present(_: Block, i: Expr) -> Expr:
        return choose(i < like(0, i), like(0, i), i)

    def place(_: Block, i: Expr, within: Expr) -> Expr:
        return choose(i < like(0, i), like(-1, i), within)

    # A number that is too large fails; a negative one is left out, and must not.
    within = pointwise("Present", present, (segments,), segments.dtype)
    within = views.checked(within, count)
    indices = pointwise("Place", place, (segments, within), segments.dtype)
    combine = combine or _of_extreme(node.op, data.dtype)
    return [_scatter(data, (indices,), (count,), data.shape[segments.rank :], combine)]


def _lower_scatter_nd(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    return [_scattered(node, inputs[0], inputs[1], known_dims(node, inputs[2], "shape"))]


def _lower_tensor_scatter(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower TensorScatterAdd and TensorScatterSub: what is added to a place is summed up first."""
    tensor, indices, updates = inputs
    total = _scattered(node, indices, updates, tensor.shape)
    combine = add if node.op == "TensorScatterAdd" else sub
    return [pointwise(node.op, combine, (tensor, total), tensor.dtype)]


def _scattered(node: OpNode, given: Tensor, updates: Tensor, shape: Shape) -> Tensor:
    """Return the sums of updates at each place of a shape, 0 where there is none."""
    indices = as_known(given)
    node.require(updates.dtype, *NUMBERS)
    node.require(indices.dtype, "int32", "int64")
    depth: Dim = indices.shape[-1] if indices.rank else 0
    if not isinstance(depth, int) or not 1 <= depth <= len(shape):
        raise NotCovered(f"{node.op}: indices of {depth} dimensions into rank {len(shape)}")
    wanted = (*indices.shape[:-1], *shape[depth:])
    if updates.shape != wanted:
        raise NotCovered(f"{node.op}: updates of shape {updates.shape}, not {wanted}")
    columns = [views.select(indices, indices.rank - 1, i) for i in range(depth)]
    places = tuple(views.checked(t, d) for t, d in zip(columns, shape, strict=False))
    return _scatter(updates, places, shape[:depth], shape[depth:])


LOWERINGS = {
    "UnsortedSegmentSum": _lower_segments,
    "UnsortedSegmentMax": _lower_segments,
    "UnsortedSegmentMin": _lower_segments,
    "UnsortedSegmentProd": _lower_segments,
    "ScatterNd": _lower_scatter_nd,
    "TensorScatterAdd": _lower_tensor_scatter,
    "TensorScatterSub": _lower_tensor_scatter,
}
