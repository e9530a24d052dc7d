"""Elements at indices that are data.

TF reports an index that is out of range; a kernel that meets one fails, and the expansion reports.
"""

from __future__ import annotations

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Constant, Expr, Tensor
from composite.compiler.tvm.lower.slicing import axis_of
from composite.compiler.tvm.lower.static import as_known, known_dims, known_ints
from composite.compiler.tvm.math.numeric import choose, convert, equal
from composite.compiler.tvm.nodes.node import OpNode

_INTEGERS = ("int32", "int64")
_NARROW = ("int16", "int8", "uint8")


def _as_indices(node: OpNode, tensor: Tensor) -> Tensor:
    """Return integers as ones of a dtype that sizes have."""
    node.require(tensor.dtype, *_INTEGERS, *_NARROW)
    if tensor.dtype in _INTEGERS:
        return tensor
    return pointwise("Cast", lambda _, x: convert(x, "int32"), (tensor,), "int32")


def _lower_gather(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower Gather (rows) and GatherV2 (along an axis, after batch dimensions)."""
    table, indices = as_known(inputs[0]), _as_indices(node, as_known(inputs[1]))
    axis, batch = 0, node.number("batch_dims", 0)
    if node.op == "GatherV2":
        (axis,) = known_ints(node, inputs[2], "axis")
        axis = axis_of(node, axis, table.rank)
        batch += indices.rank if batch < 0 else 0
    if not 0 <= batch <= min(axis, indices.rank):
        raise NotCovered(f"{node.op}: {batch} batch dimensions before axis {axis}")
    for a, b in zip(table.shape[:batch], indices.shape[:batch], strict=True):
        dims.require_equal(a, b, f"{node.op}: batch")
    known = _folded(table, indices, axis) if batch == 0 else None
    return [known or views.gather(table, indices, axis, batch)]


def _folded(table: Tensor, indices: Tensor, axis: int) -> Tensor | None:
    """Return the elements of a table that is known, for the shape arithmetic of a body."""
    if table.known is None or indices.known is None:
        return None
    size = table.known.shape[axis]
    if not all(isinstance(i, int | np.integer) and 0 <= i < size for i in indices.known.flat):
        raise NotCovered("GatherV2: an index is out of range, or depends on an unknown size")
    value = np.asarray(np.take(table.known, indices.known.astype(np.int64), axis=axis), object)
    return Tensor(tuple(value.shape), table.dtype, Constant(value), value)


def _lower_gather_nd(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    table, indices = as_known(inputs[0]), _as_indices(node, as_known(inputs[1]))
    depth = indices.shape[-1] if indices.rank else 0
    if not isinstance(depth, int) or not 1 <= depth <= table.rank:
        raise NotCovered(f"GatherNd: indices of {depth} dimensions into rank {table.rank}")
    last = indices.rank - 1
    return [views.gather_elements(table, [views.select(indices, last, i) for i in range(depth)])]


def _lower_one_hot(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Compare each index with every position; one that is out of range equals none."""
    given, depth, on, off = inputs
    indices = _as_indices(node, given)
    node.require(on.dtype)
    (size,) = known_dims(node, depth, "depth")
    node.at_least(size, 0, f"a depth of {size}")
    axis = axis_of(node, node.number("axis", -1), indices.rank + 1)
    apart = graph.reshape(indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    places = views.iota(size, indices.dtype, indices.rank + 1, axis)

    def body(_: Expr, index: Expr, place: Expr, then: Expr, other: Expr) -> Expr:
        return choose(equal(index, place), then, other)

    return [pointwise("OneHot", body, (apart, places, on, off), on.dtype, cost=2)]


LOWERINGS = {
    "Gather": _lower_gather,
    "GatherV2": _lower_gather,
    "GatherNd": _lower_gather_nd,
    "OneHot": _lower_one_hot,
}
