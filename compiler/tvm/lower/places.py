"""Ops whose elements depend on their places: ranges of numbers, bands of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from composite.compiler.tvm.codegen.block import Block
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims, views
from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.ir.graph import pointwise
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.lower.static import (
    constant_values,
    known_dims,
    known_ints,
    known_tensor,
)
from composite.compiler.tvm.math.numeric import add, cast, choose, like, mul
from composite.compiler.tvm.read.node import OpNode

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

    places = (views.iota(rows, "int64", 2, 0), views.iota(columns, "int64", 2, 1))
    return [pointwise(node.op, body, (tensor, *places), tensor.dtype, cost=3)]


LOWERINGS = {
    "Range": _lower_range,
    "MatrixBandPart": _lower_band,
}
