"""Ops whose elements depend on their places: ranges of numbers, bands and diagonals of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, graph, views
from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.ir.views import Gather
from composite.compiler.tvm.lower.joining import padded
from composite.compiler.tvm.lower.static import (
    constant_values,
    known_dims,
    known_ints,
    known_tensor,
)
from composite.compiler.tvm.math.numeric import add, cast, choose, equal, like, mul
from composite.compiler.tvm.nodes.node import OpNode
from composite.compiler.tvm.tir.block import Block

_INTEGERS = ("int32", "int64")


def _lower_range(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower Range: of integers it is known now, unless it is as long as an unknown size."""
    dtype = inputs[0].dtype
    node.require(dtype, "float32", "float64", *_INTEGERS)
    if dtype not in _INTEGERS:
        return [_floats(node, inputs)]
    start, limit, step = (known_dims(node, x, "bounds")[0] for x in inputs)
    if step == 0:
        raise NotCovered("Range: a step of 0 (TF's op reports it)")
    if any(isinstance(bound, Poly) for bound in (start, limit, step)):
        return [_of_unknown_size(node, start, limit, step, dtype)]
    bounds: Any = (start, limit, step)
    return [known_tensor(np.arange(*bounds).astype(object), dtype)]


def _of_unknown_size(node: OpNode, start: Dim, limit: Dim, step: Dim, dtype: str) -> Tensor:
    positive = isinstance(step, int) and step > 0
    count = dims.divide(limit - start, step) if positive else None
    if count is None:
        raise NotCovered(f"Range: steps of {step} to an unknown size")
    node.at_least(count, 0, f"a range from {start} to {limit}")
    places = views.iota(count, dtype)
    if step != 1:
        places = pointwise(node.op, mul, (places, known_tensor(step, dtype)), dtype)
    if start == 0:
        return places
    return pointwise(node.op, add, (known_tensor(start, dtype), places), dtype)


def _floats(node: OpNode, inputs: list[Tensor]) -> Tensor:
    """Return ``start + i * step`` with TensorFlow's roundings, that of the product as well."""
    dtype = inputs[0].dtype
    number = np.dtype(dtype).type
    start, limit, step = (number(constant_values(node, x, "bounds")[0]) for x in inputs)
    many = (limit - start) / step if step else number(-1)
    if not 0 <= many < math.inf:
        raise NotCovered(f"Range: from {start} to {limit} by {step} (TF's op reports it)")

    def as_number(block: Block, i: Expr) -> Expr:
        return cast(block, i, "int64", dtype)

    places = views.iota(math.ceil(many), "int64")
    numbers = pointwise("Cast", as_number, (places,), dtype)
    product = pointwise("Mul", mul, (numbers, inputs[2]), dtype)
    return pointwise(node.op, add, (product, inputs[0]), dtype)


def _lower_band(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower MatrixBandPart: zero outside of a band around the diagonal of each matrix."""
    tensor = inputs[0]
    node.require(tensor.dtype)
    ((below,), (above,)) = (known_ints(node, x, "band") for x in inputs[1:])
    rows, columns = tensor.shape[-2:]
    for band, size in ((below, rows), (above, columns)):
        node.at_least(size, max(band, 0), f"a band of {band} in size {size}")

    def body(_: Block, x: Expr, row: Expr, column: Expr) -> Expr:
        zero, past = like(0, x), row - column
        if below >= 0:
            x = choose(past > like(below, past), zero, x)
        if above >= 0:
            x = choose(past < like(-above, past), zero, x)
        return x

    operands = (tensor, *_rows_and_columns(tensor.shape[-2:]))
    return [pointwise(node.op, body, operands, tensor.dtype, cost=3)]


def _rows_and_columns(size: tuple[Dim, ...]) -> tuple[Tensor, Tensor]:
    """Return the numbers of the row and the column of each element of matrices."""
    rows, columns = size
    return views.iota(rows, "int64", 2, 0), views.iota(columns, "int64", 2, 1)


def _known_diagonal(node: OpNode, numbers: Tensor) -> int:
    """Return the number of the diagonal: 0 is the main one, those above it are positive."""
    found = set(known_ints(node, numbers, "k"))
    if len(found) != 1:
        raise NotCovered(f"{node.op}: several diagonals")
    return found.pop()


def _first(k: int) -> tuple[int, int]:
    """Return the row and the column of a diagonal's first element."""
    return max(-k, 0), max(k, 0)


def _length(node: OpNode, size: tuple[Dim, ...], k: int) -> Dim:
    """Return how many elements a diagonal of matrices of a size has."""
    rows, columns = size
    if k == 0 and rows == columns:
        return rows
    if not (isinstance(rows, int) and isinstance(columns, int)):
        raise NotCovered(
            f"{node.op}: diagonal {k} of matrices of {rows} x {columns}, not known now"
        )
    row, column = _first(k)
    length = min(rows - row, columns - column)
    if length <= 0:
        raise NotCovered(f"{node.op}: no diagonal {k} in {rows} x {columns} (TF's op reports it)")
    return length


def _lower_diagonal_part(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower MatrixDiagPartV3 of one diagonal, which needs no padding."""
    tensor = inputs[0]
    node.require(tensor.dtype)
    k = _known_diagonal(node, inputs[1])
    length = _length(node, tensor.shape[-2:], k)
    firsts = zip(tensor.shape[-2:], _first(k), strict=True)
    at = tuple(views.sliced(views.iota(n, "int64"), [first], (length,)) for n, first in firsts)
    batch = tensor.rank - 2
    element = Gather(tensor, at, (batch, batch + 1), (batch,), tuple(range(batch)))
    return [Tensor((*tensor.shape[:-2], length), tensor.dtype, element)]


def _lower_diagonal(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower MatrixDiagV3 of one diagonal."""
    diagonal, numbers, *sizes, around = inputs
    node.require(diagonal.dtype)
    k = _known_diagonal(node, numbers)
    length = diagonal.shape[-1]
    given = [known_dims(node, size, "sizes")[0] for size in sizes]
    least = [length + first for first in _first(k)]
    if given == [-1, -1]:
        least = [length + abs(k)] * 2  # square matrices, if nothing else is said
    rows, columns = (own if size == -1 else size for own, size in zip(least, given, strict=True))
    dims.require_equal(_length(node, (rows, columns), k), length, f"{node.op}: diagonal {k}")
    return [_with_diagonal(node, around, diagonal, (rows, columns), k)]


def _lower_set_diagonal(node: OpNode, inputs: list[Tensor]) -> list[Tensor]:
    """Lower MatrixSetDiagV3 of one diagonal."""
    tensor, diagonal, numbers = inputs
    node.require(tensor.dtype)
    k, size = _known_diagonal(node, numbers), tensor.shape[-2:]
    dims.require_equal(_length(node, size, k), diagonal.shape[-1], f"{node.op}: diagonal {k}")
    return [_with_diagonal(node, tensor, diagonal, size, k)]


def _with_diagonal(
    node: OpNode, others: Tensor, diagonal: Tensor, size: tuple[Dim, ...], k: int
) -> Tensor:
    """Return matrices of a size with a diagonal, elsewhere ``others``."""
    *batch, length = diagonal.shape
    first = _first(k)[0]
    around = [*((0, 0) for _ in batch), (first, size[0] - length - first)]
    own = graph.reshape(padded(diagonal, around), (*batch, size[0], 1))

    def body(_: Block, other: Expr, own: Expr, row: Expr, column: Expr) -> Expr:
        return choose(equal(column - row, like(k, row)), own, other)

    operands = (others, own, *_rows_and_columns(size))
    return pointwise(node.op, body, operands, diagonal.dtype, cost=3, shape=(*batch, *size))


LOWERINGS = {
    "Range": _lower_range,
    "MatrixBandPart": _lower_band,
    "MatrixDiagPartV3": _lower_diagonal_part,
    "MatrixDiagV3": _lower_diagonal,
    "MatrixSetDiagV3": _lower_set_diagonal,
}
